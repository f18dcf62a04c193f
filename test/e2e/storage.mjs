// The machines' storage on disk, for tests: reading all rows, changing them, and
// letting time pass.
//
//	rows(dir)            resolves to every row of every machine: { machine, key, value },
//	                     the value as latin-1 text
//	elapse(dir, ms)      moves the machines' hourly work to ms ago, and removes their
//	                     alarms, as if these had been lost
//	edit(dir, change)    change(key, text) returns the new text of a row, of the same
//	                     length
//	machines(dir)        resolves to the number of machines that have storage
//
// The gateway must be down, except for rows and machines.
import { host } from "./platforms.mjs";

export const { rows, elapse, edit, machines } = host;
