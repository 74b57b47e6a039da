// weights [O, I] times x [I, T] for 1 to 8 columns, float32, as a handler of XLA's FFI on CPUs.
//
// A narrow product should take as long as its weights take to arrive from memory. XLA's kernels do
// not overlap the arithmetic of several columns with that wait; this one prefetches the next rows
// of weights meanwhile. The order in which an output is summed depends on I and the machine's lanes
// alone, so its bits are the same for every number of columns and of threads.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16, kRegisters = 32;
#elif defined(__AVX__)
constexpr int kLanes = 8, kRegisters = 16;
#else  // 128 bits, as NEON and SSE have
constexpr int kLanes = 4, kRegisters = 16;
#endif
constexpr int64_t kAloneBelow = 100000;  // weights; waking a thread for fewer does not pay
constexpr int64_t kBlocksPerThread = 4;  // so that a thread that is interrupted delays few rows

typedef float Lanes __attribute__((vector_size(4 * kLanes), aligned(4)));

inline float Sum(Lanes lanes) {
  for (int n = kLanes / 2; n; n /= 2) for (int i = 0; i < n; ++i) lanes[i] += lanes[i + n];
  return lanes[0];
}

// Rows that are multiplied together; the registers hold their sums.
constexpr int RowsTogether(int columns) {
  for (int r = 4; r > 1; r /= 2) if (r * columns + r + 1 <= kRegisters) return r;
  return 1;
}
template <int R, int T>
inline void Group(const float* w, const float* x, int64_t stride, int64_t inputs, float* out) {
  Lanes sums[R][T] = {};
  auto step = [&](int64_t i, auto load) {
    Lanes weights[R];
    for (int r = 0; r < R; ++r) {
      weights[r] = load(w + r * inputs + i);
      if (T > 1) __builtin_prefetch(w + (r + R) * inputs + i, 0, 2);  // one column: only costs
    }
    for (int t = 0; t < T; ++t) {
      Lanes column = *reinterpret_cast<const Lanes*>(x + t * stride + i);
      for (int r = 0; r < R; ++r) sums[r][t] += weights[r] * column;
    }
  };
  int64_t i = 0;
  for (; i + kLanes <= inputs; i += kLanes)
    step(i, [](const float* from) { return *reinterpret_cast<const Lanes*>(from); });
  if (i < inputs) step(i, [=](const float* from) {
    Lanes rest = {};
    std::memcpy(&rest, from, (inputs - i) * sizeof(float));
    return rest;
  });
  for (int r = 0; r < R; ++r) for (int t = 0; t < T; ++t) out[r * T + t] = Sum(sums[r][t]);
}

// Rows [from, to) of the output [O, T]; x is [T, stride], zeros beyond the inputs.
template <int T>
void Rows(const float* w, const float* x, int64_t stride, int64_t inputs, float* out,
          int64_t from, int64_t to) {
  constexpr int R = RowsTogether(T);
  int64_t o = from;
  for (; o + R <= to; o += R) Group<R, T>(w + o * inputs, x, stride, inputs, out + o * T);
  for (; o < to; ++o) Group<1, T>(w + o * inputs, x, stride, inputs, out + o * T);
}

constexpr decltype(&Rows<1>) kRows[] = {
    Rows<1>, Rows<2>, Rows<3>, Rows<4>, Rows<5>, Rows<6>, Rows<7>, Rows<8>};

struct Progress {
  std::atomic<int64_t> next{0}, done{0};  // blocks of rows
  std::vector<float> x;  // the columns one after the other
};

ffi::Error Product(ffi::ThreadPool pool, ffi::Buffer<ffi::F32> weights, ffi::Buffer<ffi::F32> x,
                   ffi::ResultBuffer<ffi::F32> result) {
  auto of_w = weights.dimensions(), of_x = x.dimensions(), of_y = result->dimensions();
  if (of_w.size() != 2 || of_x.size() != 2 || of_y.size() != 2 || of_x[0] != of_w[1] ||
      of_y[0] != of_w[0] || of_y[1] != of_x[1] || of_x[1] < 1 || of_x[1] > 8)
    return ffi::Error::InvalidArgument("specjax product: [O, I] times [I, T] with T of 1 to 8");
  const int64_t outputs = of_w[0], inputs = of_w[1], columns = of_x[1];
  const int64_t stride = (inputs + kLanes - 1) / kLanes * kLanes;
  auto progress = std::make_shared<Progress>();
  progress->x.resize(stride * columns);  // zeros
  for (int64_t i = 0; i < inputs; ++i)
    for (int64_t t = 0; t < columns; ++t)
      progress->x[t * stride + i] = x.typed_data()[i * columns + t];
  const bool alone = outputs * inputs < kAloneBelow;
  const int64_t threads = alone ? 1 : std::max<int64_t>(1, pool.num_threads());
  const int64_t blocks = threads == 1 ? 1 : threads * kBlocksPerThread;
  const int64_t step = std::max<int64_t>(1, ((outputs + blocks - 1) / blocks + 3) / 4 * 4);
  const int64_t total = (outputs + step - 1) / step;
  auto work = [=, w = weights.typed_data(), out = result->typed_data()] {
    for (int64_t k; (k = progress->next.fetch_add(1)) < total;) {
      kRows[columns - 1](w, progress->x.data(), stride, inputs, out, k * step,
                         std::min(outputs, (k + 1) * step));
      progress->done.fetch_add(1, std::memory_order_release);
    }
  };
  for (int64_t i = 1; i < threads; ++i) pool.Schedule(decltype(work)(work));
  work();
  // What is not done yet runs on another thread and waits for nobody, so this cannot starve.
  while (progress->done.load(std::memory_order_acquire) < total) std::this_thread::yield();
  return ffi::Error::Success();
}

}  // namespace
XLA_FFI_DEFINE_HANDLER_SYMBOL(specjax_product, Product,
                              ffi::Ffi::Bind().Ctx<ffi::ThreadPool>()
                                  .Arg<ffi::Buffer<ffi::F32>>().Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());
