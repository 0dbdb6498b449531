//! Rules that users write, as a TOML file.
