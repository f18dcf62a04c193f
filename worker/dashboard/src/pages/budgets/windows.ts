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

// perWindow are what follows the limit of a budget.
export const perWindow = {
  minute: " per minute",
  "5h": " per 5 hours",
  day: " per day",
  week: " per week",
  month: " per month",
  total: "",
};

export type BudgetWindow = keyof typeof windowNames;
