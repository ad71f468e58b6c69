// A ros2_control controller: exported inverse kinematics turn a target of the hand into velocities of the joints.
#include <controller_interface/controller_interface.hpp>
#include <pluginlib/class_list_macros.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "panda_hand.h"
#include "panda_ik.h"

namespace panda_controller
{
using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;

class IkController : public controller_interface::ControllerInterface
{
public:
  CallbackReturn on_init() override
  {
    panda_ik_defaults(&input_);
    return panda_ik_reset(workspace_) == 0 ? CallbackReturn::SUCCESS : CallbackReturn::ERROR;
  }

  InterfaceConfiguration command_interface_configuration() const override { return interfaces("velocity"); }
  InterfaceConfiguration state_interface_configuration() const override { return interfaces("position"); }

  CallbackReturn on_activate(const rclcpp_lifecycle::State &) override
  {
    read();
    std::copy(std::begin(input_.q), std::end(input_.q), input_.target_posture);
    hand(input_.q, input_.target_panda_hand, hand_workspace_);
    input_.target_panda_hand[11] += 0.05;  // up; a realtime subscription would set the target
    input_.gain = 0.02;
    for (double & speed : input_.speed) speed = 0.5;
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) override { return stopped(CallbackReturn::SUCCESS); }

  controller_interface::return_type update(const rclcpp::Time &, const rclcpp::Duration & period) override
  {
    read();
    input_.dt = period.seconds();
    if (panda_ik_tick(workspace_, &input_, &output_) != PANDA_IK_SOLVED) {
      return stopped(controller_interface::return_type::ERROR);
    }
    for (std::size_t k = 0; k < PANDA_IK_JOINT_NAMES; k++) command_interfaces_[k].set_value(output_.velocity[k]);
    return controller_interface::return_type::OK;
  }

private:
  static InterfaceConfiguration interfaces(const std::string & kind)
  {
    std::vector<std::string> names;
    for (const auto & joint : panda_ik_joint_names) names.push_back(std::string(joint) + "/" + kind);
    return {controller_interface::interface_configuration_type::INDIVIDUAL, names};
  }

  void read()
  {
    for (std::size_t k = 0; k < PANDA_IK_JOINT_NAMES; k++) input_.q[k] = state_interfaces_[k].get_value();
  }

  template <typename Result>
  Result stopped(Result result)
  {
    for (auto & command : command_interfaces_) command.set_value(0.0);
    return result;
  }

  panda_ik_input input_;
  panda_ik_output output_;
  unsigned char workspace_[PANDA_IK_WORKSPACE_BYTES];
  unsigned char hand_workspace_[HAND_WORKSPACE_BYTES];
};
}  // namespace panda_controller

PLUGINLIB_EXPORT_CLASS(panda_controller::IkController, controller_interface::ControllerInterface)
