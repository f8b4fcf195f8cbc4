# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts a change into a header and finds the test that notices it."""
