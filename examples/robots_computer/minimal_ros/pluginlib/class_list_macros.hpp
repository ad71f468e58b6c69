// A stand-in for pluginlib: a function that makes the controller.
#pragma once
#include <memory>

#define PLUGINLIB_EXPORT_CLASS(Class, Base) \
  std::unique_ptr<Base> make_controller() { return std::make_unique<Class>(); }
