// bias + GELU in one pass, on torch's stable C interface. CPU, float32 and float64, forward only.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>

#include "gelu_math.h"

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int64_t kElementsPerTask = 16384;

// One clone for each vector width; the loader takes the widest that this processor has.
#if defined(__x86_64__) && !defined(__clang__) && __GNUC__ >= 12
#define EACH_VECTOR_WIDTH __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define EACH_VECTOR_WIDTH
#endif

#define DEFINE_ROW(T, form)                                                                         \
  EACH_VECTOR_WIDTH void row_##form(const T* __restrict in, const T* __restrict bias, T* __restrict out, \
                                    int64_t width) {                                                \
    for (int64_t column = 0; column < width; ++column) {                                            \
      out[column] = gelu_math::gelu_##form(in[column] + bias[column]);                              \
    }                                                                                               \
  }

DEFINE_ROW(float, erf)
DEFINE_ROW(double, erf)
DEFINE_ROW(float, tanh)
DEFINE_ROW(double, tanh)

template <typename T>
void run(const Tensor& x, const Tensor& bias, const Tensor& y, bool tanh_form) {
  const T* const in = static_cast<const T*>(x.const_data_ptr());
  const T* const add = static_cast<const T*>(bias.const_data_ptr());
  T* const out = static_cast<T*>(y.mutable_data_ptr());
  const int64_t width = bias.numel();
  const int64_t rows = x.numel() / width;
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / width);
  torch::stable::parallel_for(0, rows, rows_per_task, [=](int64_t begin, int64_t end) {
    for (int64_t start = begin * width; start < end * width; start += width) {
      if (tanh_form) {
        row_tanh(in + start, add, out + start, width);
      } else {
        row_erf(in + start, add, out + start, width);
      }
    }
  });
}

std::string shape_of(const Tensor& tensor) {
  std::ostringstream text;
  text << '[';
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    text << (dim ? ", " : "") << tensor.size(dim);
  }
  text << ']';
  return text.str();
}

void require(bool fact, const std::string& message) {
  if (!fact) {
    throw std::runtime_error("bias_gelu: " + message);
  }
}

void check(const Tensor& x, const Tensor& bias) {
  require(x.is_cpu() && bias.is_cpu(), "x and bias must be on the CPU");
  require(x.scalar_type() == ScalarType::Float || x.scalar_type() == ScalarType::Double,
          "x must be float32 or float64");
  require(bias.scalar_type() == x.scalar_type(), "bias must have the dtype of x");
  require(x.dim() >= 1 && bias.dim() == 1 && bias.size(0) == x.size(x.dim() - 1),
          "bias must be one value for each of the last dimension of x, got x " + shape_of(x) + " and bias " +
              shape_of(bias));
}

Tensor bias_gelu(const Tensor& x, const Tensor& bias, bool tanh_form) {
  check(x, bias);
  const Tensor dense_x = torch::stable::contiguous(x);
  const Tensor dense_bias = torch::stable::contiguous(bias);
  const Tensor y = torch::stable::empty_like(dense_x);
  if (x.numel() == 0) {
    return y;
  }
  if (x.scalar_type() == ScalarType::Float) {
    run<float>(dense_x, dense_bias, y, tanh_form);
  } else {
    run<double>(dense_x, dense_bias, y, tanh_form);
  }
  return y;
}

}  // namespace

STABLE_TORCH_LIBRARY(seedance_fused_gelu, library) {
  library.def("bias_gelu(Tensor x, Tensor bias, bool tanh_form) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(seedance_fused_gelu, CPU, library) {
  library.impl("bias_gelu", TORCH_BOX(&bias_gelu));
}
