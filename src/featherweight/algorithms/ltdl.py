"""Sparse factorization of matrices with branch-induced sparsity (Featherstone 2005, section 2 and appendix).

H is symmetric and positive definite, and H_ij is zero unless i and j are on one path to the ground of the tree `parent`.
Then H = L^T D L (LTDL) or H = L^T L (LTL) fills in nothing: L has entries where H has them below the diagonal.

    LTDL   for k = n to 1:  r_k = 1 / H_kk,  for i in ancestors of k:  a = H_ki r_k
                                for j = i and its ancestors:  H_ij -= H_kj a
                                H_ki = a
    LTL    for k = n to 1:  H_kk = sqrt H_kk,  H_kj /= H_kk for ancestors j,  H_ij -= H_ki H_kj

Both work in situ on the lower triangle. With D1 = sum of (d_i - 1) and D2 = sum of d_i (d_i - 1) / 2 over depths d_i, both
take D2 multiplications and subtractions. LTDL also takes D1 multiplications and the reciprocals 1/D, which solutions with the
factors need as well; LTL also takes D1 divisions and n square roots.
"""

from __future__ import annotations

from ..spatial import sqrt


def ltdl_in_situ(parent, H):
    """Write D on the diagonal of H and the rest of L, whose diagonal is one, below it; return the reciprocals of D."""
    n = len(parent)
    r = [0.0] * n
    for k in range(n - 1, -1, -1):
        r[k] = 1.0 / H[k][k]
        i = parent[k]
        while i >= 0:
            a = H[k][i] * r[k]
            j = i
            while j >= 0:
                H[i][j] = H[i][j] - H[k][j] * a
                j = parent[j]
            H[k][i] = a
            i = parent[i]
    return r


def ltl_in_situ(parent, H) -> None:
    """Write L on and below the diagonal of H."""
    for k in range(len(parent) - 1, -1, -1):
        H[k][k] = sqrt(H[k][k])
        j = parent[k]
        while j >= 0:
            H[k][j] = H[k][j] / H[k][k]
            j = parent[j]
        i = parent[k]
        while i >= 0:
            j = i
            while j >= 0:
                H[i][j] = H[i][j] - H[k][i] * H[k][j]
                j = parent[j]
            i = parent[i]


def ltdl(parent, H, F) -> None:
    """Write the packed factors of H."""
    A = on_pattern(parent, H)
    ltdl_in_situ(parent, A)
    pack(parent, A, F)


def ltl(parent, H, F) -> None:
    """Write the packed factor of H."""
    A = on_pattern(parent, H)
    ltl_in_situ(parent, A)
    pack(parent, A, F)


def on_pattern(parent, H):
    """Return a copy of the entries of H, on and below the diagonal, that the tree allows."""
    n = len(parent)
    A = [[0.0] * n for _ in range(n)]
    for i in range(n):
        j = i
        while j >= 0:
            A[i][j] = H[i][j]
            j = parent[j]
    return A


# A packed factor consists of its nonzero entries: for each row its diagonal, its parent's column, and so on to the root.


def pack(parent, A, F) -> None:
    """Write the entries of a factor one after the other."""
    k = 0
    for i in range(len(parent)):
        j = i
        while j >= 0:
            F[k] = A[i][j]
            k += 1
            j = parent[j]


def row_starts(parent):
    """Return the start of each row of a packed factor."""
    n = len(parent)
    depth = [0] * n
    start = [0] * n
    for i in range(n):
        depth[i] = 1 if parent[i] < 0 else depth[parent[i]] + 1
        if i > 0:
            start[i] = start[i - 1] + depth[i - 1]
    return start


def outside_pattern(parent, H, total) -> None:
    """Write the sum of squares of the entries below the diagonal that the tree does not allow."""
    n = len(parent)
    total[0] = 0.0
    for i in range(n):
        allowed = [0] * n
        j = parent[i]
        while j >= 0:
            allowed[j] = 1
            j = parent[j]
        for j in range(i):
            if allowed[j] == 0:
                total[0] = total[0] + H[i][j] * H[i][j]


# Products with a packed factor: D is on its diagonal if `unit` is 1 (LTDL), its own diagonal if `unit` is 0 (LTL).


def multiply(parent, unit: int, F, x, y) -> None:
    """Write y = L x."""
    k = 0
    for i in range(len(parent)):
        y[i] = x[i] if unit == 1 else F[k] * x[i]
        k += 1
        j = parent[i]
        while j >= 0:
            y[i] = y[i] + F[k] * x[j]
            k += 1
            j = parent[j]


def multiply_transposed(parent, unit: int, F, x, y) -> None:
    """Write y = L^T x."""
    k = 0
    for i in range(len(parent)):
        y[i] = x[i] if unit == 1 else F[k] * x[i]
        k += 1
        j = parent[i]
        while j >= 0:
            y[j] = y[j] + F[k] * x[i]
            k += 1
            j = parent[j]


def divide(parent, unit: int, F, x, y) -> None:
    """Write y = L^-1 x."""
    start = row_starts(parent)
    for i in range(len(parent)):
        y[i] = x[i]
        k = start[i] + 1
        j = parent[i]
        while j >= 0:
            y[i] = y[i] - F[k] * y[j]
            k += 1
            j = parent[j]
        if unit == 0:
            y[i] = y[i] / F[start[i]]


def divide_transposed(parent, unit: int, F, x, y) -> None:
    """Write y = L^-T x."""
    start = row_starts(parent)
    n = len(parent)
    for i in range(n):
        y[i] = x[i]
    for i in range(n - 1, -1, -1):
        if unit == 0:
            y[i] = y[i] / F[start[i]]
        k = start[i] + 1
        j = parent[i]
        while j >= 0:
            y[j] = y[j] - F[k] * y[i]
            k += 1
            j = parent[j]


def solve(parent, unit: int, F, x, y) -> None:
    """Write y = H^-1 x: L^-1 D^-1 L^-T x, where LTL has no D."""
    start = row_starts(parent)
    n = len(parent)
    z = [0.0] * n
    divide_transposed(parent, unit, F, x, z)
    if unit == 1:
        for i in range(n):
            z[i] = z[i] / F[start[i]]
    divide(parent, unit, F, z, y)


# The same with a factor in situ, whose diagonal is one and is not read.


def back_substitute(parent, L, y) -> None:
    """Replace y by L^-T y."""
    for i in range(len(parent) - 1, -1, -1):
        j = parent[i]
        while j >= 0:
            y[j] = y[j] - L[i][j] * y[i]
            j = parent[j]


def forward_substitute(parent, L, y) -> None:
    """Replace y by L^-1 y."""
    for i in range(len(parent)):
        j = parent[i]
        while j >= 0:
            y[i] = y[i] - L[i][j] * y[j]
            j = parent[j]


def solve_in_situ(parent, L, r, y) -> None:
    """Replace y by H^-1 y, with the reciprocals r of D."""
    back_substitute(parent, L, y)
    for i in range(len(parent)):
        y[i] = y[i] * r[i]
    forward_substitute(parent, L, y)


def invert_unit(parent, L, N) -> None:
    """Write N = L^-1 for L with a unit diagonal; entries for ancestors only."""
    for k in range(len(parent)):
        N[k][k] = 1.0
        r = parent[k]
        while r >= 0:
            s = L[k][r]
            j = parent[k]
            while j > r:
                s = s + L[k][j] * N[j][r]
                j = parent[j]
            N[k][r] = 0.0 - s
            r = parent[r]


def product_with_transpose(parent, N, d, P) -> None:
    """Write P = N diag(d) N^T, full and symmetric, for N with a unit diagonal and entries for ancestors only."""
    n = len(parent)
    for i in range(n):
        E = [0.0] * n  # row i of N diag(d)
        j = i
        while j >= 0:
            E[j] = N[i][j] * d[j]
            j = parent[j]
        for k in range(i + 1):
            s = 0.0
            j = k
            while j >= 0:  # E is zero if j is not an ancestor of i
                s = s + N[k][j] * E[j]
                j = parent[j]
            P[i][k] = s
            P[k][i] = s
