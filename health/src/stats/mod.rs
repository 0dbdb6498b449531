//! Probabilities and tests, each a pure function that gives a number for every input.
