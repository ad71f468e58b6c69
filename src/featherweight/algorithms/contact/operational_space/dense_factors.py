"""Dense factors of the Delassus matrix D of m rows: D = C diag(p) C^T, C with a unit diagonal; no pivoting.

If rows depend on each other, D is singular. Then D + mu 1 has factors, and the proximal iteration

    x <- (D + mu 1)^-1 (b + mu x)

converges to a least-squares solution of D x = b, in one iteration along all directions in which D is much larger than mu.
"""

from __future__ import annotations

MU = 1e-8  # relative to the mean diagonal entry
ITERATIONS = 4
NOTHING = 1e-150  # gives rows that cannot move factors too


def factorize(m: int, D):
    """Return C, below the diagonal, and 1 / p; D is not changed."""
    C = [[0.0] * m for _ in range(m)]
    reciprocal = [0.0] * m
    for i in range(m):
        for j in range(i + 1):
            C[i][j] = D[i][j]
    for k in range(m):
        reciprocal[k] = 1.0 / C[k][k]
        column = [0.0] * m
        for i in range(k + 1, m):
            column[i] = C[i][k]
            C[i][k] = column[i] * reciprocal[k]
            for j in range(k + 1, i + 1):
                C[i][j] = C[i][j] - C[i][k] * column[j]
    return C, reciprocal


def solve(m: int, C, reciprocal, b):
    """Return D^-1 b."""
    x = [0.0] * m
    for i in range(m):
        x[i] = b[i]
        for j in range(i):
            x[i] = x[i] - C[i][j] * x[j]
    for i in range(m):
        x[i] = x[i] * reciprocal[i]
    for i in range(m - 1, -1, -1):
        for j in range(i + 1, m):
            x[i] = x[i] - C[j][i] * x[j]
    return x


def invert(m: int, D) -> None:
    """Replace D by its inverse."""
    C, reciprocal = factorize(m, D)
    N = [[0.0] * m for _ in range(m)]  # C^-1
    for i in range(m):
        N[i][i] = 1.0
        for j in range(i):
            s = 0.0
            for k in range(j, i):
                s = s + C[i][k] * N[k][j]
            N[i][j] = 0.0 - s
    for i in range(m):
        E = [0.0] * m
        for k in range(i, m):
            E[k] = N[k][i] * reciprocal[k]
        for j in range(i + 1):
            s = 0.0
            for k in range(i, m):
                s = s + E[k] * N[k][j]
            D[i][j] = s
            D[j][i] = s


def solve_dependent(m: int, D, b, dependent: int):
    """Return a solution of D x = b, and the sum of squares of D_kk / p_k, which is large if D is nearly singular.

    `dependent` is 1 if D is singular everywhere; the sum is zero then.
    """
    if dependent == 0:
        C, reciprocal = factorize(m, D)
        strain = 0.0
        for k in range(m):
            ratio = D[k][k] * reciprocal[k]
            strain = strain + ratio * ratio
        return solve(m, C, reciprocal, b), strain
    trace = 0.0
    for k in range(m):
        trace = trace + D[k][k]
    mu = (MU / m) * trace + NOTHING
    A = [[0.0] * m for _ in range(m)]
    for i in range(m):
        for j in range(i + 1):
            A[i][j] = D[i][j] + mu if i == j else D[i][j]
    C, reciprocal = factorize(m, A)
    x = solve(m, C, reciprocal, b)
    for _ in range(ITERATIONS - 1):
        c = [0.0] * m
        for k in range(m):
            c[k] = b[k] + mu * x[k]
        x = solve(m, C, reciprocal, c)
    return x, 0.0
