//! A table: columns as wide as their widest cell, or cells one after the other where that is
//! wider than the terminal.

use anstyle::Style;

use crate::show::row::Row;

/// Between two columns.
const BETWEEN: &str = "  ";

/// Cells, row by row; the first row is the head.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<Row>>,
    open: Vec<Row>,
}

impl Table {
    pub(super) fn cell(&mut self, cell: Row) {
        self.open.push(cell);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.open));
    }

    pub(super) fn rows(self, columns: usize) -> Vec<Row> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(Row::width).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..count).map(width).collect();
        let between = BETWEEN.len() * count.saturating_sub(1);
        let fits = widths.iter().sum::<usize>() + between <= columns;
        let mut rows = Vec::new();
        for (index, cells) in self.rows.into_iter().enumerate() {
            let mut row = Row::default().hanging(BETWEEN.len());
            for (column, cell) in cells.into_iter().enumerate() {
                if column > 0 {
                    row.push(Style::new(), BETWEEN);
                }
                let padding = widths[column].saturating_sub(cell.width());
                row.extend(cell);
                if fits && column + 1 < count {
                    row.push(Style::new(), &" ".repeat(padding));
                }
            }
            rows.extend(row.wrapped(columns));
            if index == 0 && fits {
                let lines: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
                rows.push(Row::new(Style::new().dimmed(), &lines.join(BETWEEN)));
            }
        }
        rows
    }
}
