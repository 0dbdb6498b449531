//! What is expected of a window, by the windows before it.
