//! [`tallyfold::CountTable`].

use tallyfold::Timestamp;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::{Absent, optional, required, texts, values_by_name};
use crate::comparison::Comparison;
use crate::error::{Returned, Thrown};
use crate::frame::frame;
use crate::plain::plain;
use crate::series::Series;

/// Counts for each combination of dimension values.
#[wasm_bindgen(js_name = CoreCountTable)]
pub struct CountTable(pub(crate) tallyfold::CountTable);

frame!(CountTable, CoreCountTable);

#[wasm_bindgen(js_class = CoreCountTable)]
impl CountTable {
    /// The sum of all rows.
    pub fn totals(&self) -> Returned {
        Ok(plain(&self.0.totals()))
    }

    /// The totals as the service reported them.
    pub fn reported(&self) -> Returned {
        Ok(plain(&self.0.reported()))
    }

    /// Compares the reported totals with the sums of the counts.
    pub fn reconciliation(&self) -> Returned {
        Ok(plain(&self.0.reconciliation()))
    }

    /// The covered time. Adjacent windows are joined.
    pub fn coverage(&self) -> Returned {
        Ok(plain(&self.0.coverage()))
    }

    /// The window of each response.
    pub fn windows(&self) -> Returned {
        Ok(plain(&self.0.windows()))
    }

    /// The windows whose counts may still change.
    pub fn provisional(&self) -> Returned {
        Ok(plain(&self.0.provisional()))
    }

    /// How many deviations were tolerated.
    pub fn notes(&self) -> Returned {
        Ok(plain(&self.0.notes()))
    }

    /// Adds up rows by some of the dimensions.
    #[wasm_bindgen(js_name = groupBy)]
    pub fn group_by(&self, names: &JsValue) -> Result<Self, Thrown> {
        let names: Vec<String> = required("groupBy", names)?;
        Ok(Self(self.0.group_by(&names)?))
    }

    /// Keeps the rows that match.
    pub fn filter(&self, conditions: &JsValue) -> Result<Self, Thrown> {
        let wanted = values_by_name("filter", conditions, Absent::Skipped)?;
        Ok(Self(self.0.filter(&wanted)?))
    }

    /// The counts by window, or by day of a zone. `days` has the name of the zone, then the timestamps at which its days begin.
    #[wasm_bindgen(js_name = byWindow)]
    pub fn by_window(&self, step: &JsValue, days: &JsValue) -> Result<Series, Thrown> {
        let step = optional("step", step)?;
        let series = match texts(days)?.as_deref() {
            Some([zone, texts @ ..]) => {
                let mut midnights = Vec::with_capacity(texts.len());
                for text in texts {
                    midnights.push(Timestamp::parse(text)?);
                }
                self.0.by_window_in(step, zone, &midnights)?
            }
            _ => self.0.by_window(step)?,
        };
        Ok(Series(series))
    }

    /// Keeps the windows in a range.
    pub fn between(&self, range: &JsValue) -> Result<Self, Thrown> {
        let range = required("range", range)?;
        Ok(Self(self.0.between(range)?))
    }

    /// Compares this table with a later one.
    pub fn compare(&self, after: &Self) -> Result<Comparison, Thrown> {
        Ok(Comparison(tallyfold::compare(&self.0, &after.0)?))
    }

    /// Merges another table.
    pub fn merge(&self, other: &Self, replace: &JsValue) -> Result<Self, Thrown> {
        let replace = optional("replace", replace)?.unwrap_or(false);
        Ok(Self(self.0.merge(&other.0, replace)?))
    }

    /// Another handle of this table, for a function that consumes it.
    pub fn copy(&self) -> Self {
        Self(self.0.clone())
    }

    /// Adds up all tables at once.
    #[wasm_bindgen(js_name = mergeAll)]
    pub fn merge_all(tables: Vec<CountTable>) -> Result<Self, Thrown> {
        let tables = tables.iter().map(|table| &table.0);
        Ok(Self(tallyfold::CountTable::merge_all(tables)?))
    }

    /// Adds up tables of several clusters.
    pub fn combine(tables: Vec<CountTable>, label: &JsValue) -> Result<Self, Thrown> {
        let label: String = required("label", label)?;
        let tables = tables.iter().map(|table| &table.0);
        Ok(Self(tallyfold::CountTable::combine(tables, &label)?))
    }

    /// The cluster and client of the counts, if they are known.
    pub fn identity(&self) -> Option<String> {
        self.0.identity().as_str().map(str::to_owned)
    }

    /// The parts of a range that are not covered.
    pub fn gaps(&self, range: &JsValue) -> Result<JsValue, Thrown> {
        Ok(plain(&self.0.gaps(optional("range", range)?)))
    }

    /// Reads a table from JSON text.
    #[wasm_bindgen(js_name = fromJson)]
    pub fn from_json(text: &JsValue) -> Result<Self, Thrown> {
        let text: String = required("table", text)?;
        Ok(Self(tallyfold::CountTable::from_json(text.as_bytes())?))
    }
}
