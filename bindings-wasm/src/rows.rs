//! The rows of a frame, copied from the memory of the library.

use std::sync::Arc;

use tallyfold::{
    Code, CountTable, Dictionary, Error, Identity, Metric, Window, Windowed, WindowedColumns,
};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::error::{Result, Thrown};

/// The columns of a series, or of the changes of a revision, as `columns()` returns them.
#[wasm_bindgen(js_name = CoreRows)]
pub struct Rows(WindowedColumns);

#[wasm_bindgen(js_class = CoreRows)]
impl Rows {
    /// Makes rows without dimensions and counts. `windows` has alternating starts and ends; `settled` is 1 for each settled
    /// window and 0 for the others; `identity` is the text of the identity.
    #[wasm_bindgen(constructor)]
    pub fn new(
        metric: Option<String>,
        windows: Vec<String>,
        settled: Vec<u8>,
        window_ids: Vec<u32>,
        identity: Option<String>,
    ) -> Result<Self> {
        let windows = windows.chunks_exact(2).zip(settled);
        let windows = windows.map(|(edges, settled)| {
            let window = Window::parse(&edges[0], &edges[1])?;
            Ok((window, settled != 0))
        });
        Ok(Self(WindowedColumns {
            metric: metric.and_then(|name| Metric::from_name(&name)),
            identity: identity.as_deref().map_or_else(Identity::default, Identity::new),
            windows: windows.collect::<Result<_>>()?,
            window_ids,
            ..WindowedColumns::default()
        }))
    }

    /// Adds a dimension: its distinct values, and the position of each row's value.
    pub fn dimension(&mut self, name: String, values: Vec<String>, ids: Vec<u32>) -> Result<()> {
        let values = Dictionary::of_sorted(values.iter().map(String::as_str));
        let values = values.ok_or_else(|| {
            let message = "want the dictionaries of a table, a series or a comparison as they are";
            Thrown::from(Error::argument("counts", Code::InvalidArgument, message))
        })?;
        self.0.dimensions.push(name);
        self.0.dictionaries.push(Arc::new(values));
        self.0.ids.push(ids);
        Ok(())
    }

    /// Sets the counts.
    pub fn counts(&mut self, success: Vec<u64>, errors: Vec<u64>, filtered: Vec<u64>) {
        self.0.counts = [success, errors, filtered];
    }

    /// Sets the counts before. The rows are then the changes from these counts to the others.
    pub fn before(&mut self, success: Vec<u64>, errors: Vec<u64>, filtered: Vec<u64>) {
        self.0.before = Some([success, errors, filtered]);
    }
}

impl Rows {
    pub(crate) fn windowed(self) -> Result<Windowed> {
        Ok(Windowed::of_columns(self.0)?)
    }

    /// The table with these columns. `totals` is the JSON of its grand totals.
    pub(crate) fn table(&self, totals: &str) -> Result<CountTable> {
        let totals = CountTable::from_json(totals.as_bytes())?;
        Ok(CountTable::of_columns(&totals, &self.0)?)
    }
}
