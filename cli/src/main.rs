//! The command `tallyfold`.
fn main() { println!("tallyfold"); }
