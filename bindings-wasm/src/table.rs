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

/// Counts per combination of dimension values.
#[wasm_bindgen(js_name = CoreCountTable)]
pub struct CountTable(pub(crate) tallyfold::CountTable);

frame!(CountTable, CoreCountTable);

#[wasm_bindgen(js_class = CoreCountTable)]
impl CountTable {
    /// Sum over all rows.
    pub fn totals(&self) -> Returned {
        Ok(plain(&self.0.totals()))
    }

    /// Totals as the service said.
    pub fn reported(&self) -> Returned {
        Ok(plain(&self.0.reported()))
    }

    /// Reported minus summed.
    pub fn reconciliation(&self) -> Returned {
        Ok(plain(&self.0.reconciliation()))
    }

    /// Windows, joined where they meet.
    pub fn coverage(&self) -> Returned {
        Ok(plain(&self.0.coverage()))
    }

    /// Windows as fetched.
    pub fn windows(&self) -> Returned {
        Ok(plain(&self.0.windows()))
    }

    /// Windows that may still change.
    pub fn provisional(&self) -> Returned {
        Ok(plain(&self.0.provisional()))
    }

    /// What was tolerated.
    pub fn notes(&self) -> Returned {
        Ok(plain(&self.0.notes()))
    }

    /// Regrouped by some of the dimensions.
    #[wasm_bindgen(js_name = groupBy)]
    pub fn group_by(&self, names: &JsValue) -> Result<Self, Thrown> {
        let names: Vec<String> = required("groupBy", names)?;
        Ok(Self(self.0.group_by(&names)?))
    }

    /// Only the rows that match.
    pub fn filter(&self, conditions: &JsValue) -> Result<Self, Thrown> {
        let wanted = values_by_name("filter", conditions, Absent::Skipped)?;
        Ok(Self(self.0.filter(&wanted)?))
    }

    /// By window, or by day of a zone: `days` has its name, then the timestamps at which days begin there.
    #[wasm_bindgen(js_name = byWindow)]
    pub fn by_window(&self, step: &JsValue, days: &JsValue) -> Result<Series, Thrown> {
        let step = optional("step", step)?;
        let series = match texts(days).as_deref() {
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

    /// Only the windows in a range.
    pub fn between(&self, range: &JsValue) -> Result<Self, Thrown> {
        let range = required("range", range)?;
        Ok(Self(self.0.between(range)?))
    }

    /// What changed from this table to another.
    pub fn compare(&self, after: &Self) -> Result<Comparison, Thrown> {
        Ok(Comparison(tallyfold::compare(&self.0, &after.0)?))
    }

    /// Joined with another table.
    pub fn merge(&self, other: &Self, replace: &JsValue) -> Result<Self, Thrown> {
        let replace = optional("replace", replace)?.unwrap_or(false);
        Ok(Self(self.0.merge(&other.0, replace)?))
    }

    /// Another handle of this table, to be handed over.
    pub fn copy(&self) -> Self {
        Self(self.0.clone())
    }

    /// All tables added up at once.
    #[wasm_bindgen(js_name = mergeAll)]
    pub fn merge_all(tables: Vec<CountTable>) -> Result<Self, Thrown> {
        let tables = tables.iter().map(|table| &table.0);
        Ok(Self(tallyfold::CountTable::merge_all(tables)?))
    }

    /// Tables of several clusters, added up on purpose.
    pub fn combine(tables: Vec<CountTable>, label: &JsValue) -> Result<Self, Thrown> {
        let label: String = required("label", label)?;
        let tables = tables.iter().map(|table| &table.0);
        Ok(Self(tallyfold::CountTable::combine(tables, &label)?))
    }

    /// Whose counts they are.
    pub fn identity(&self) -> Option<String> {
        self.0.identity().as_str().map(str::to_owned)
    }

    /// What of a range is not covered.
    pub fn gaps(&self, range: &JsValue) -> Result<JsValue, Thrown> {
        Ok(plain(&self.0.gaps(optional("range", range)?)))
    }

    /// From JSON text.
    #[wasm_bindgen(js_name = fromJson)]
    pub fn from_json(text: &JsValue) -> Result<Self, Thrown> {
        let text: String = required("table", text)?;
        Ok(Self(tallyfold::CountTable::from_json(text.as_bytes())?))
    }
}
