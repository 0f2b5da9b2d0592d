"""Exact samplers: every draw follows its stated law; rounding has no influence on it.

source            the one source of randomness: 64-bit words
enclosures        certified integer bounds of exp(-x), and a uniform drawn digit by digit
inversion         any law on {0, 1, 2, ...}, by comparing words with its distribution function
bernoulli         whole arrays of coins that show heads with probability exp(-x)
discrete_laplace  the noise of pure differential privacy; and the geometric law
discrete_gaussian the noise of (alpha, beta) and zero-concentrated differential privacy
choice            one of many candidates, better ones more likely: the exponential mechanism
paths             sequences near a distribution function, by counting paths in a band
near_means        sequences whose mean features are near given ones, by tilted rejection
k_norm            vectors z with probability proportional to exp(-||z|| / scale), Euclidean norm
body              the same for a norm whose unit ball contains all differences of some vectors
sparse            how many empty cells of a huge histogram pass a threshold, and which ones
urn               integer counts drawn from urns of records and public balls
"""
