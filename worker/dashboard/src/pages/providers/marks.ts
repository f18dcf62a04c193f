import type { ProviderRow } from "../../api-types";
import { families } from "../../connections";
import { marksOf } from "../../marks";
import { servers } from "./servers";

// providerMarks returns the marks of families, servers and the providers of a list, by their ids.
export const providerMarks = (list: ProviderRow[]) =>
  marksOf([...families.map(([id, name, initials]) => ({ id, name, initials })), ...servers, ...list]);
