//! Rules applied to counts: findings, states, replay.
