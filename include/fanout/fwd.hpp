// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Declares fanout's types without their definitions, for headers that only name them. Costs a tenth of including
// <thread>:
//
//     #include <fanout/fwd.hpp>
//     class Solver {
//       std::unique_ptr<fanout::ParallelModel<Model>> model_;
//     };
//
// Use it instead of declarations of your own: those would have to repeat the inline namespace and the default template
// arguments.

#include <fanout/base/requirements.hpp>

#include <cstddef>

namespace fanout { inline namespace v0 {

class Error;
class InvalidDeviceId;
class InvalidArgument;
class DeviceMismatch;
class ShapeMismatch;
class StructureMismatch;
class OutOfMemory;
class DeviceError;
class CommunicatorAbandoned;
class ReplicaError;
class FactoryError;
class Timeout;
struct Failure;
struct LateShard;

// trees
template <class T>
struct leaf_traits;
template <char... Letters>
struct Key;
template <class... Entries>
struct Dict;

// from rows to shards
struct RowRange;
struct Shard;
class Plan;
struct EvenSplit;
struct ChunkSplit;
class WeightedSplit;
class MeasuredSplit;
class AnySplit;
struct CallTimes;
struct Progress;

// arrays
template <std::size_t R>
struct Extents;
template <class T, std::size_t R>
class View;
template <class T, std::size_t R>
class Tensor;
template <class T, std::size_t R>
class Output;

// devices
struct DeviceId;
class HostDevice;
struct HostDeviceOptions;
class SimulatedDevice;
struct SimulatedDeviceOptions;
template <class... Ds>
class DeviceSet;
template <class D>
struct AllVisible;
template <class D, int... I>
struct Indices;
template <class... Ds>
struct FirstAvailable;

// calls
struct Options;
class Report;
template <class F>
struct Factory;
template <class T>
class PerReplica;
template <class T>
class Shared;
template <class T, std::size_t Axis = 0>
class Slice;
template <class... Args>
struct ShardInputs;
template <class R>
class ShardOutputs;
template <class R>
class Pending;
namespace detail {
template <class K, class T>
struct Entry;
class ShardTask;
class DeviceTable;
class DirectSums;
class CallClock;
class CallObserver;
class Recovery;
template <class Model, class Batches>
class ResultStream;
}  // namespace detail
namespace backend {
struct Collective;
class CollectiveTransport;
class TransportRanks;
class ProcessRanks;
class ProcessRendezvous;
}  // namespace backend
class ShardCommunicator;
template <class M, class Source = AllVisible<HostDevice>>
class ParallelModel;
struct PipelineOptions;
template <class... Stages>
class Pipeline;
class StageError;

}}  // namespace fanout::v0
