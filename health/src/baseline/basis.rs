//! The rules by which a level can be learned.

tallyfold::names! {
    /// By which windows a level was learned.
    pub enum Basis {
        /// The same slot of the seasons before, with its neighbours.
        Season = "season",
        /// The same slot of two or three seasons before, with its neighbours: there are not enough seasons yet.
        FewSeasons = "few_seasons",
        /// The same slot of the days before, with its neighbours: there are not two seasons yet.
        Days = "days",
        /// The windows just before: there are not enough days yet.
        Recent = "recent",
    }
}
