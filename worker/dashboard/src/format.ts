// money writes US dollars; what is less than one, to a hundredth of a cent.
export const money = (usd: number) =>
  "$" + usd.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: usd > 0 && usd < 1 ? 4 : 2 });
