//! Are the causes of incidents found whose causes are known?
pub(crate) mod cases;
pub(crate) mod generated;
pub(crate) mod marks;
pub(crate) mod methods;
pub(crate) mod plain;
pub(crate) mod report;
