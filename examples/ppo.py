"""Proximal policy optimization (Schulman et al. 2017), with NumPy alone, for Gymnasium's vector environments.

    policy      a ~ N(mu(o), diag(sigma²)),  mu a small tanh network, sigma independent of o
    advantage   A_t = sum_k (gamma lambda)^k delta_{t+k},  delta_t = r_t + gamma V(o_{t+1}) - V(o_t)
    gradient    of  mean min(rho A, clip(rho, 1 - c, 1 + c) A),  rho = pi(a|o) / (pi(a|o) of the policy that acted)

Frameworks would not speed up networks of this size: a pass over a thousand rows takes half a millisecond.
"""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np


@dataclass
class Settings:
    steps: int = 32  # per environment between two updates
    epochs: int = 10  # passes over these steps in an update
    minibatch: int = 128
    discount: float = 0.99  # gamma
    trace: float = 0.95  # lambda
    clip: float = 0.2  # c
    rate: float = 3e-4  # learning rate of Adam, decreases to zero
    entropy: float = 0.0  # weight of the entropy bonus in the first half of the training; then actions become less random
    greatest_gradient: float = 0.5
    hidden: tuple = (64, 64)
    sigma: float = 1.0  # initial standard deviation of actions, in units of their range
    last_sigma: float = math.inf  # greatest one at the end, approached in the second half, for policies that run without noise


class Network:
    """Layers with tanh, the last one linear. The parameters are views of one vector, which Adam updates."""

    def __init__(self, sizes, rng, last, extra=0):
        shapes = [*pairwise(sizes)]
        self.vector = np.zeros(sum((n + 1) * m for n, m in shapes) + extra, np.float32)
        self.layers, at = [], 0
        for k, (n, m) in enumerate(shapes):
            layer = self.vector[at : (at := at + (n + 1) * m)].reshape(n + 1, m)  # weights, and the bias as the last row
            orthogonal = np.linalg.qr(rng.standard_normal((max(n, m), min(n, m))))[0]
            layer[:n] = (last if k == len(shapes) - 1 else 2.0**0.5) * (orthogonal if n >= m else orthogonal.T)
            self.layers.append(layer)
        self.extra = self.vector[at:]
        self._moments, self._updates = np.zeros((2, self.vector.size), np.float32), 0

    def __call__(self, x):
        self.inputs = []
        for k, layer in enumerate(self.layers):
            self.inputs.append(x)
            x = x @ layer[:-1] + layer[-1]
            if k < len(self.layers) - 1:
                x = np.tanh(x)
        return x

    def pullback(self, y_bar, extra_bar=()):
        """Return the gradient with respect to all parameters, given the gradient `y_bar` with respect to the last results."""
        parts = [np.asarray(extra_bar, np.float32)]
        for k in range(len(self.layers) - 1, -1, -1):
            x, layer = self.inputs[k], self.layers[k]
            parts += [y_bar.sum(axis=0), (x.T @ y_bar).ravel()]
            y_bar = (y_bar @ layer[:-1].T) * (1.0 - x * x)  # x is the tanh of the previous layer; unused for the first layer
        return np.concatenate(parts[::-1])

    def descend(self, gradient, rate, greatest):
        """Take a step of Adam (Kingma and Ba 2015) with the gradient clipped to the norm `greatest`."""
        gradient = gradient * min(1.0, greatest / (np.linalg.norm(gradient) + 1e-8))
        self._updates += 1
        for moment, decay, x in zip(self._moments, (0.9, 0.999), (gradient, gradient**2), strict=True):
            moment += (1.0 - decay) * (x - moment)
        mean, square = (m / (1.0 - d**self._updates) for m, d in zip(self._moments, (0.9, 0.999), strict=True))
        self.vector -= rate * mean / (np.sqrt(square) + 1e-5)


class Scale:
    """Running mean and variance of numbers (..., n)."""

    def __init__(self, n):
        self.mean, self.variance, self.count = np.zeros(n), np.ones(n), 1e-4

    def note(self, x):
        x = x.reshape(-1, len(self.mean))
        total, off = self.count + len(x), x.mean(axis=0) - self.mean
        spread = self.variance * self.count + x.var(axis=0) * len(x) + off**2 * self.count * len(x) / total
        self.mean, self.variance, self.count = self.mean + off * len(x) / total, spread / total, total


@dataclass
class Progress:
    """Progress after each update: environment steps, seconds, and mean returns and lengths of finished episodes."""

    steps: list = field(default_factory=list)
    seconds: list = field(default_factory=list)
    returns: list = field(default_factory=list)
    lengths: list = field(default_factory=list)


class PPO:
    """PPO for environments that start the next episode in the same step (`autoreset_mode="SameStep"`)."""

    def __init__(self, envs, settings=None, seed=0):
        self.envs, self.settings, self.seed = envs, settings or Settings(), seed
        self.rng = np.random.default_rng(seed)
        seen, acts = envs.single_observation_space.shape[0], envs.single_action_space.shape[0]
        self.policy = Network((seen, *self.settings.hidden, acts), self.rng, 0.01, extra=acts)  # and log sigma
        self.policy.extra[:] = np.log(self.settings.sigma)
        self.value = Network((seen, *self.settings.hidden, 1), self.rng, 1.0)
        self.seen, self.earned = Scale(seen), Scale(1)
        self.progress = Progress()

    def normalized(self, o):
        return np.clip((o - self.seen.mean) / np.sqrt(self.seen.variance + 1e-8), -10.0, 10.0).astype(np.float32)

    def act(self, observations, rng=None):
        """Return the mean actions for observations (..., numbers), or random actions if `rng` is given."""
        a = self.policy(self.normalized(observations))
        if rng is not None:
            a = a + np.exp(self.policy.extra) * rng.standard_normal(a.shape)
        return np.clip(a, -1.0, 1.0) * self.envs.single_action_space.high

    def learn(self, steps, told=print):
        """Train for at least `steps` environment steps. Actions are in units of their range."""
        s, n = self.settings, self.envs.num_envs
        updates, begun = -(-steps // (s.steps * n)), time.perf_counter()
        o = self.envs.reset(seed=self.seed)[0]
        self.seen.note(o)
        self._return, self._length, self._discounted = np.zeros(n), np.zeros(n, int), np.zeros(n)
        self._ended = []
        for k in range(updates):
            o, batch = self._collect(o)
            self._update(batch, s.rate * (1.0 - k / updates), s.entropy * (2 * k < updates))
            self._calm(2.0 * (k + 1) / updates - 1.0)
            p, ended = self.progress, self._ended[-100:]
            p.steps.append((k + 1) * s.steps * n)
            p.seconds.append(time.perf_counter() - begun)
            for values, column in ((p.returns, 0), (p.lengths, 1)):
                values.append(np.mean([e[column] for e in ended]) if ended else np.nan)
            if told and (k % 10 == 9 or k == updates - 1):
                told(
                    f"{p.steps[-1]:9d} steps {p.seconds[-1]:6.1f} s   return {p.returns[-1]:7.1f}   length {p.lengths[-1]:6.1f}"
                )
        return self.progress

    def _calm(self, part):
        """Limit sigma, after a part of the second half of the training, between its value at the middle and `last_sigma`."""
        if part <= 0.0:
            self._middle = self.policy.extra.copy()
        elif self.settings.last_sigma < math.inf:
            end = np.minimum(self._middle, math.log(self.settings.last_sigma))
            np.minimum(self.policy.extra, (1.0 - part) * self._middle + part * end, out=self.policy.extra)

    def _collect(self, o):
        """Take steps with random actions; return rows of (observation, action, log probability, advantage, return)."""
        s, n, kept = self.settings, self.envs.num_envs, []
        scale, log_sigma = self.envs.single_action_space.high, self.policy.extra
        for _ in range(s.steps):
            x = self.normalized(o)
            z = self.rng.standard_normal((n, len(scale))).astype(np.float32)
            a = self.policy(x) + np.exp(log_sigma) * z
            after, r, terminated, truncated, info = self.envs.step(np.clip(a, -1.0, 1.0) * scale)
            ended = terminated | truncated
            final = np.where(ended[:, None], info["final_obs"], after) if ended.any() else after
            kept.append((x, a, -0.5 * (z * z).sum(-1) - log_sigma.sum(), r, self.normalized(final), terminated, ended))
            self._tell(r, ended)
            o = after
        x, a, log_p, r, following, terminated, ended = map(np.array, zip(*kept, strict=True))
        self.seen.note(x * np.sqrt(self.seen.variance + 1e-8) + self.seen.mean)
        r = r / np.sqrt(self.earned.variance + 1e-8)
        v, ahead = self.value(x)[..., 0], self.value(following)[..., 0]
        delta, A, last = r + s.discount * ahead * ~terminated - v, np.zeros_like(r), 0.0
        for t in range(s.steps - 1, -1, -1):
            A[t] = last = delta[t] + s.discount * s.trace * ~ended[t] * last
        rows = s.steps * n
        return o, (x.reshape(rows, -1), a.reshape(rows, -1), log_p.ravel(), A.ravel(), (A + v).ravel())

    def _tell(self, r, ended):
        """Update the returns and lengths of the episodes."""
        self._return += r
        self._length += 1
        self._discounted = self.settings.discount * self._discounted + r
        self.earned.note(self._discounted)
        self._ended += zip(self._return[ended], self._length[ended], strict=True)
        for account in (self._return, self._length, self._discounted):
            account[ended] = 0

    def _update(self, batch, rate, entropy):
        """Update policy and value function in two threads."""
        s, rows = self.settings, len(batch[0])
        orders = [self.rng.permutation(rows) for _ in range(s.epochs)]
        parts = [order[k : k + s.minibatch] for order in orders for k in range(0, rows, s.minibatch)]
        with ThreadPoolExecutor(1) as other:
            valued = other.submit(lambda: [self._descend_value(batch, part, rate) for part in parts])
            for part in parts:
                self._descend_policy(batch, part, rate, entropy)
            valued.result()

    def _descend_policy(self, batch, part, rate, entropy):
        s, count = self.settings, len(part)
        x, a, log_p, A = (y[part] for y in batch[:4])
        A = (A - A.mean()) / (A.std() + 1e-8)
        log_sigma = self.policy.extra
        z = (a - self.policy(x)) / np.exp(log_sigma)
        ratio = np.exp(-0.5 * (z * z).sum(-1) - log_sigma.sum() - log_p)
        free = np.where(A > 0.0, ratio < 1.0 + s.clip, ratio > 1.0 - s.clip)  # where clipping is not active
        log_p_bar = (-(ratio * A * free) / count).astype(np.float32)[:, None]
        mean_bar, log_sigma_bar = log_p_bar * z / np.exp(log_sigma), (log_p_bar * (z * z - 1.0)).sum(axis=0)
        self.policy.descend(self.policy.pullback(mean_bar, log_sigma_bar - entropy), rate, s.greatest_gradient)

    def _descend_value(self, batch, part, rate):
        x, R = batch[0][part], batch[4][part]
        v_bar = (self.value(x)[:, 0] - R) / len(part)
        self.value.descend(self.value.pullback(v_bar.astype(np.float32)[:, None]), rate, self.settings.greatest_gradient)
