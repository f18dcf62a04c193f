import { now } from "../../clock";
import type { ComponentChildren } from "preact";
import { Choice, TextFilter } from "../../forms";
import { Tabs } from "../../tabs";
import type { Names } from "../../named";
import { FilterMenu } from "../../popover";
import { useFilter } from "../../route";
import { Field } from "../../ui";
import { type Group, groups, groupText, type Ids, nameOf } from "./report";
import { type Asked, dayMs, intervals, type Range, ranges, type Span, type Unit, utcDay } from "./span";

// PeriodFilter is the period that is shown, as it is in the address.
export interface PeriodFilter {
  values: Asked;
  set: { [K in keyof Asked]: (value: Asked[K]) => void };
}

export function usePeriod(): PeriodFilter {
  const [range, setRange] = useFilter<Range>(
    "range",
    "7d",
    ranges.map(([k]) => k),
  );
  const [from, setFrom] = useFilter("from", "");
  const [to, setTo] = useFilter("to", "");
  const [unit, setUnit] = useFilter<Unit | "">("unit", "", ["", "hour", "day", "month"]);
  return { values: { range, from, to, unit }, set: { range: setRange, from: setFrom, to: setTo, unit: setUnit } };
}

// PeriodFields are the controls of the period, and in one row with it those of the group and others.
export function PeriodFields({
  of: { values, set },
  group,
  accounts,
  tags,
  onGroup,
  children,
}: {
  of: PeriodFilter;
  group: Group;
  /** whether accounts have names, which members do not see */
  accounts: boolean;
  /** names of tags */
  tags: string[];
  onGroup: (group: Group) => void;
  children: ComponentChildren;
}) {
  const today = utcDay(now());
  const named = groups
    .slice(1)
    .map(([by]) => by)
    .filter((by) => accounts || by !== "connection");
  return (
    <div class="row wrap end filters">
      <Tabs label="Period" value={values.range} items={ranges.map(([k, n]) => [k, n])} onPick={set.range} />
      {values.range === "custom" && (
        <>
          <DayField label="From (UTC)" value={values.from || utcDay(now() - 6 * dayMs)} max={today} onDay={set.from} />
          <DayField label="To (UTC)" value={values.to || today} max={today} onDay={set.to} />
        </>
      )}
      <select
        class="narrow"
        aria-label="Group by"
        value={group}
        onChange={(e) => onGroup(e.currentTarget.value as Group)}
      >
        <option value="">No grouping</option>
        {[...named, ...tagGroups(group, tags)].map((by) => (
          <option key={by} value={by}>
            By {groupText(by)}
          </option>
        ))}
      </select>
      {children}
    </div>
  );
}

// tagGroups returns the groups of names of tags, with the one that is shown.
function tagGroups(group: Group, tags: string[]): Group[] {
  const all = tags.map((name): Group => `tag:${name}`);
  return group.startsWith("tag:") && !all.includes(group) ? [...all, group] : all;
}

function DayField({
  label,
  value,
  max,
  onDay,
}: {
  label: string;
  value: string;
  max: string;
  onDay: (day: string) => void;
}) {
  return (
    <div class="narrow">
      <Field label={label}>
        <input
          type="date"
          required
          max={max}
          value={value}
          onChange={(e) => e.currentTarget.value && onDay(e.currentTarget.value)}
        />
      </Field>
    </div>
  );
}

// IdFilter is what the usage is of, as it is in the address; unset filters are missing.
export interface IdFilter {
  values: Ids;
  set: (of: keyof Ids, id: string) => void;
}

export function useIds(): IdFilter {
  const of = {
    key: useFilter("key", ""),
    connection: useFilter("connection", ""),
    provider: useFilter("provider", ""),
    model: useFilter("model", ""),
    endpoint: useFilter("endpoint", ""),
    tool: useFilter("tool", ""),
    tag: useFilter("tag", ""),
  };
  const values: Ids = {};
  for (const [name, [value]] of Object.entries(of)) if (value) values[name as keyof Ids] = value;
  return { values, set: (name, id) => of[name][1](id) };
}

// FilterFields are the controls of the ids, of the interval and of the comparison, in a popover.
export function FilterFields({
  of: { values, set },
  names,
  period,
  span,
  compare: [compared, compare],
}: {
  of: IdFilter;
  names: Names | null;
  period: PeriodFilter;
  span: Span;
  compare: [compared: boolean, set: (on: boolean) => void];
}) {
  const controls: [keyof Ids, string, Map<string, string>?][] = [
    ["key", "Key", names?.keys],
    ["connection", "Account", names?.connections],
    ["provider", "Provider"],
    ["model", "Model"],
    ["endpoint", "Endpoint"],
    ["tool", "Tool"],
    ["tag", "Tag"],
  ];
  const shown = (of: keyof Ids) => {
    const id = values[of] ?? "";
    return of === "tag" ? id : nameOf(id, of, names);
  };
  const chips = controls
    .filter(([of]) => values[of])
    .map(([of, label]) => ({ label, value: shown(of), clear: () => set(of, "") }));
  const unitName = (unit: Unit) => `${intervals[unit].name}s`;
  if (period.values.unit === span.unit)
    chips.push({ label: "Interval", value: unitName(span.unit), clear: () => period.set.unit("") });
  if (compared) chips.push({ label: "Compare", value: "previous period", clear: () => compare(false) });
  return (
    <FilterMenu set={chips}>
      <label class="row tight compare">
        <input type="checkbox" checked={compared} onChange={(e) => compare(e.currentTarget.checked)} />
        Compare with the previous period
      </label>
      <div class="grid">
        {span.units.length > 1 && (
          <Choice
            label="Interval"
            value={span.unit}
            options={span.units.map((unit) => [unit, unitName(unit)])}
            onPick={(unit) => period.set.unit(unit as Unit)}
          />
        )}
        {controls.map(([of, label, list]) =>
          of === "key" || of === "connection" ? (
            <Choice
              key={of}
              label={label}
              value={values[of] ?? ""}
              options={[["", "All"], ...(list ?? [])]}
              onPick={(id) => set(of, id)}
            />
          ) : (
            <TextFilter key={of} label={label} value={values[of] ?? ""} onValue={(id) => set(of, id)} />
          ),
        )}
      </div>
    </FilterMenu>
  );
}
