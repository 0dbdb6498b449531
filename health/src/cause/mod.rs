//! Which few combinations of dimension values explain a change.
pub(crate) mod counted;
pub(crate) mod distinct;
pub(crate) mod element;
pub(crate) mod elements;
pub(crate) mod explain;
pub(crate) mod explanation;
pub(crate) mod leaves;
pub(crate) mod likelihood;
pub(crate) mod numbers;
pub(crate) mod options;
pub(crate) mod pool;
pub(crate) mod rates;
pub(crate) mod reference;
pub(crate) mod risk;
pub(crate) mod sentence;
pub(crate) mod telling;
pub(crate) mod weighing;
