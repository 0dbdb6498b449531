//! How causes are looked for.

tallyfold::options! {
    /// How causes are looked for.
    #[derive(Clone, Debug)]
    pub struct ExplainOptions: Default {
        /// At most how many causes are named.
        most: usize = 5,
        /// At most how many further candidates are listed, best first.
        others: usize = 5,
    }
}
