// Stand-ins for the parts of ros2_control (Jazzy) that the sample controller uses, to compile and try it without ROS.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace rclcpp
{
class Time
{
};

class Duration
{
public:
  explicit Duration(double seconds) : seconds_(seconds) {}
  double seconds() const { return seconds_; }

private:
  double seconds_;
};
}  // namespace rclcpp

namespace rclcpp_lifecycle
{
class State
{
};
}  // namespace rclcpp_lifecycle

namespace hardware_interface
{
class LoanedInterface
{
public:
  explicit LoanedInterface(double & value) : value_(&value) {}
  double get_value() const { return *value_; }
  bool set_value(double value) { return *value_ = value, true; }

private:
  double * value_;
};
using LoanedCommandInterface = LoanedInterface;
using LoanedStateInterface = LoanedInterface;
}  // namespace hardware_interface

namespace controller_interface
{
enum class CallbackReturn { SUCCESS, FAILURE, ERROR };
enum class return_type { OK, ERROR };
enum class interface_configuration_type { ALL, INDIVIDUAL, NONE };

struct InterfaceConfiguration
{
  interface_configuration_type type;
  std::vector<std::string> names;
};

class ControllerInterface
{
public:
  virtual ~ControllerInterface() = default;
  virtual CallbackReturn on_init() = 0;
  virtual InterfaceConfiguration command_interface_configuration() const = 0;
  virtual InterfaceConfiguration state_interface_configuration() const = 0;
  virtual CallbackReturn on_activate(const rclcpp_lifecycle::State &) { return CallbackReturn::SUCCESS; }
  virtual CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) { return CallbackReturn::SUCCESS; }
  virtual return_type update(const rclcpp::Time & time, const rclcpp::Duration & period) = 0;

  void assign_interfaces(
    std::vector<hardware_interface::LoanedCommandInterface> && commands,
    std::vector<hardware_interface::LoanedStateInterface> && states)
  {
    command_interfaces_ = std::move(commands);
    state_interfaces_ = std::move(states);
  }

protected:
  std::vector<hardware_interface::LoanedCommandInterface> command_interfaces_;
  std::vector<hardware_interface::LoanedStateInterface> state_interfaces_;
};
}  // namespace controller_interface
