"""Exact samplers: every draw follows its stated law; rounding has no influence on it.

source            the one source of randomness: 64-bit words
enclosures        certified integer bounds of exp(-x), and a uniform drawn digit by digit
inversion         any law on {0, 1, 2, ...}, by comparing words with its distribution function
rejection         arrays filled by rejection, and fair signs
bernoulli         whole arrays of coins that show heads with probability exp(-x)
discrete_laplace  the noise of pure differential privacy; and the geometric law
discrete_gaussian the noise of (alpha, beta) and zero-concentrated differential privacy
choice            one of many candidates, better ones more likely: the exponential mechanism
sparse            how many empty cells of a huge histogram pass a threshold, and which ones
"""
