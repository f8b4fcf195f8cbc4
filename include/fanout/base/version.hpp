// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The version: 10,000 * major + 100 * minor + patch, so 100 is 0.1.0, and 10203 is 1.2.3. For `#if FANOUT_VERSION >=
/// 100`. It is stated here alone: CMake, Conan and pkg-config read it from here.
#define FANOUT_VERSION 100
/// The first number of the version, for `#if`.
#define FANOUT_VERSION_MAJOR (FANOUT_VERSION / 10000)
/// The second number of the version, for `#if`.
#define FANOUT_VERSION_MINOR (FANOUT_VERSION / 100 % 100)
/// The third number of the version, for `#if`.
#define FANOUT_VERSION_PATCH (FANOUT_VERSION % 100)
