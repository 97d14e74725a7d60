//! fio's text and JSON of runs, as fio itself would print them.


