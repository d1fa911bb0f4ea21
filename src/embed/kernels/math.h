// Square root, and exp and GELU on vectors, for the templates beside this file.
#pragma once

#include <cstddef>

#include <immintrin.h>

namespace waybill::embed::kernels {
namespace {

inline float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

// e^x for x <= 88; relative error below 2e-7.
// 2^n e^r with n = round(x / ln 2), |r| <= ln 2 / 2, e^r by its Taylor series to r^7.
template <class V>
inline typename V::Float exponential(typename V::Float x) {
  const auto n = V::round(V::mul(x, V::broadcast(1.44269504F)));
  auto r = V::fma(n, V::broadcast(-0.693359375F), x);
  r = V::fma(n, V::broadcast(2.12194440e-4F), r);
  auto p = V::broadcast(1.0F / 5040.0F);
  for (const float c : {1.0F / 720.0F, 1.0F / 120.0F, 1.0F / 24.0F, 1.0F / 6.0F, 0.5F, 1.0F, 1.0F}) {
    p = V::fma(p, r, V::broadcast(c));
  }
  return V::scale_by_power(p, n);
}

// erf(x) as a quotient of polynomials, absolute error below 4e-7 (the coefficients of Eigen's
// generic_fast_erf_float, Eigen/src/Core/MathFunctionsImpl.h; beyond |x| = 4 erf is +-1 in float32).
template <class V>
inline typename V::Float erf(typename V::Float x) {
  x = V::max(V::min(x, V::broadcast(4.0F)), V::broadcast(-4.0F));
  const auto x2 = V::mul(x, x);
  auto p = V::broadcast(-2.72614225801306e-10F);
  for (const float c : {2.77068142495902e-08F, -2.10102402082508e-06F, -5.69250639462346e-05F,
                        -7.34990630326855e-04F, -2.95459980854025e-03F, -1.60960333262415e-02F}) {
    p = V::fma(p, x2, V::broadcast(c));
  }
  auto q = V::broadcast(-1.45660718464996e-05F);
  for (const float c :
       {-2.13374055278905e-04F, -1.68282697438203e-03F, -7.37332916720468e-03F, -1.42647390514189e-02F}) {
    q = V::fma(q, x2, V::broadcast(c));
  }
  return V::div(V::mul(x, p), q);
}

template <class V>
inline typename V::Float gelu(typename V::Float x) {
  const auto half = V::mul(x, V::broadcast(0.5F));
  return V::fma(half, erf<V>(V::mul(x, V::broadcast(0.70710678F))), half);
}

// The same to 7e-5, without a division, for precisions that lose more than that anyway: x (1/2 + t P(t^2))
// with t = x clamped to +-4.2. P is a least-squares fit of Phi(t) - 1/2 that is exactly 1/2 at the ends.
template <class V>
inline typename V::Float gelu_fast(typename V::Float x) {
  const auto t = V::max(V::min(x, V::broadcast(4.2F)), V::broadcast(-4.2F));
  const auto t2 = V::mul(t, t);
  auto p = V::broadcast(8.59187109e-11F);
  for (const float c : {-7.72154842e-09F, 3.04503758e-07F, -7.03246e-06F, 1.08020318e-04F, -1.19757254e-03F,
                        1.01192203e-02F, -6.68514716e-02F, 3.99198538e-01F}) {
    p = V::fma(p, t2, V::broadcast(c));
  }
  return V::mul(x, V::fma(t, p, V::broadcast(0.5F)));
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) = x / (1 + e^(-2 u)) with the same u.
template <class V>
inline typename V::Float gelu_tanh(typename V::Float x) {
  const auto inner = V::fma(V::mul(V::mul(x, x), x), V::broadcast(0.044715F), x);
  const auto power = V::min(V::mul(inner, V::broadcast(-1.59576912F)), V::broadcast(80.0F));
  return V::div(x, V::add(V::broadcast(1.0F), exponential<V>(power)));
}

}  // namespace
}  // namespace waybill::embed::kernels
