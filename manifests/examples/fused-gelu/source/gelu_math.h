// GELU as plain arithmetic without branches or calls, so that the compiler can vectorise a loop over it.
#pragma once

#include <cstdint>
#include <cstring>

#define GELU_INLINE inline __attribute__((always_inline))

namespace gelu_math {

template <typename T>
struct Format;

template <>
struct Format<float> {
  using Bits = int32_t;
  static constexpr int mantissa = 23;
  static constexpr Bits bias = 127;
  static constexpr int exponential_terms = 7;
  static constexpr int erfc_terms = 12;
};

template <>
struct Format<double> {
  using Bits = int64_t;
  static constexpr int mantissa = 52;
  static constexpr Bits bias = 1023;
  static constexpr int exponential_terms = 13;
  static constexpr int erfc_terms = 28;
};

// e^x as 2^n * e^r with |r| <= ln(2) / 2. Infinite above the range, zero below it, NaN for NaN.
template <typename T>
GELU_INLINE T exponential(T x) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  T power = x * T(1.44269504088896340736);
  power = power > T(F::bias + 1) ? T(F::bias + 1) : power;
  power = power < T(-F::bias) ? T(-F::bias) : power;
  // Adding 1.5 * 2^mantissa rounds to a whole number, which then is the low bits of the sum.
  constexpr T shifter = T(1.5) * T(Bits(1) << F::mantissa);
  const T shifted = power + shifter;
  const T r = (power - (shifted - shifter)) * T(0.69314718055994530942);
  T sum = T(1);
#pragma GCC unroll 32
  for (int k = F::exponential_terms; k > 0; --k) {
    sum = T(1) + sum * r * (T(1) / T(k));
  }
  Bits bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + F::bias) << F::mantissa;
  T scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return sum * scale;
}

// Chebyshev coefficients of log(erfc(z) * exp(z^2) / t) over t = 2 / (2 + z), fitted with 50 digits.
constexpr double kErfc[28] = {
    -0.6513268598908547, 0.64196979235649021, 0.019476473204185836, -0.0095615147868086323,
    -0.00094659534448203692, 0.00036683949785276145, 4.2523324806907769e-05, -2.0278578112534242e-05,
    -1.6242900046470256e-06, 1.3036558355805232e-06, 1.5626441722066142e-08, -8.5238095914926541e-08,
    6.5290544390988515e-09, 5.0593434955514693e-09, -9.9136415649303307e-10, -2.273651222931836e-10,
    9.646791102015527e-11, 2.3940380830391146e-12, -6.8860275264975532e-12, 8.9448792730907253e-13,
    3.1309213993429581e-13, -1.1270822361367252e-13, 3.8109052551892316e-16, 7.1060976136092371e-15,
    -1.5230282014571043e-15, -9.457494571291226e-17, 1.210237189224278e-16, -2.8166630877471666e-17,
};

// erfc(z) for z >= 0.
template <typename T>
GELU_INLINE T erfc_of_positive(T z) {
  const T t = T(2) / (T(2) + z);
  const T twice_y = T(4) * t - T(2);
  T previous = T(0), current = T(0);
#pragma GCC unroll 32
  for (int k = Format<T>::erfc_terms - 1; k > 0; --k) {
    const T next = twice_y * current - previous + T(kErfc[k]);
    previous = current;
    current = next;
  }
  return t * exponential(T(kErfc[0]) + T(0.5) * twice_y * current - previous - z * z);
}

// x * Phi(x), the exact form.
template <typename T>
GELU_INLINE T gelu_erf(T x) {
  const T magnitude = x < T(0) ? -x : x;
  const T tail = T(0.5) * erfc_of_positive(magnitude * T(0.70710678118654752440));
  return x * (x < T(0) ? tail : T(1) - tail);
}

// 0.5 x (1 + tanh(u)) is x / (1 + exp(-2 u)).
template <typename T>
GELU_INLINE T gelu_tanh(T x) {
  const T u = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  return x / (T(1) + exponential(T(-2) * u));
}

}  // namespace gelu_math
