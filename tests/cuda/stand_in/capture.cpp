// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "use.hpp"

using namespace stand_in_test;

namespace {

/// How a capture ends if another thread, which has exchanged its mode for `other`, waits for a stream meanwhile.
cudaError_t end_of_capture(cudaStreamCaptureMode mode, cudaStreamCaptureMode other, cudaError_t* waited) {
  const auto captured = make_stream(cudaStreamNonBlocking), stream = make_stream(cudaStreamNonBlocking);
  ok(cudaStreamBeginCapture(captured, mode));
  std::thread([&] {
    auto exchanged = other;
    ok(cudaThreadExchangeStreamCaptureMode(&exchanged));
    CHECK(exchanged == cudaStreamCaptureModeGlobal);
    *waited = cudaStreamSynchronize(stream);
    if (*waited != cudaSuccess) CHECK(cudaGetLastError() == *waited);
  }).join();
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(captured, &graph);
  CHECK((graph != nullptr) == (ended == cudaSuccess));
  if (graph != nullptr) ok(cudaGraphDestroy(graph));
  static_cast<void>(cudaGetLastError());
  ok(cudaStreamDestroy(captured));
  ok(cudaStreamDestroy(stream));
  return ended;
}

}  // namespace

TEST_CASE("a wait of another thread fails and invalidates a global capture, unless its mode ignores it") {
  const Fresh fresh;
  cudaError_t waited = cudaSuccess;
  CHECK(end_of_capture(cudaStreamCaptureModeGlobal, cudaStreamCaptureModeGlobal, &waited) ==
        cudaErrorStreamCaptureInvalidated);
  CHECK(waited == cudaErrorStreamCaptureUnsupported);
  for (const auto other : {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    CHECK(end_of_capture(cudaStreamCaptureModeGlobal, other, &waited) == cudaSuccess);
    CHECK(waited == cudaSuccess);
  }
  for (const auto mode : {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    CHECK(end_of_capture(mode, cudaStreamCaptureModeGlobal, &waited) == cudaSuccess);
    CHECK(waited == cudaSuccess);
  }
}

TEST_CASE("a wait of the thread that captures invalidates its capture, unless that is relaxed") {
  const Fresh fresh;
  for (const auto mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    const bool relaxed = mode == cudaStreamCaptureModeRelaxed;
    const auto captured = make_stream(cudaStreamNonBlocking), stream = make_stream(cudaStreamNonBlocking);
    ok(cudaStreamBeginCapture(captured, mode));
    CHECK(cudaStreamSynchronize(stream) == (relaxed ? cudaSuccess : cudaErrorStreamCaptureUnsupported));
    cudaStreamCaptureStatus status{};
    ok(cudaStreamIsCapturing(captured, &status));
    CHECK(status == (relaxed ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated));
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(captured, &graph) == (relaxed ? cudaSuccess : cudaErrorStreamCaptureInvalidated));
    static_cast<void>(cudaGetLastError());
    ok(cudaStreamDestroy(captured));
    ok(cudaStreamDestroy(stream));
  }
}
