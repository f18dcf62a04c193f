// Written by GOLDEN=update go test ./pkg/budget; DO NOT EDIT.

// windowNames are the windows of budgets as the form and the list show them.
export const windowNames = {
  minute: "Every minute",
  "5h": "5 hours after the first request",
  day: "Every day",
  week: "Every Monday",
  month: "Every month",
  total: "Never",
};

export type BudgetWindow = keyof typeof windowNames;
