// Preferences of a user, which the browser stores.

// remembered returns the value of a name, or null without one.
export function remembered(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null; // the browser stores nothing for this page
  }
}

// remember reports whether the browser has stored a value.
export function remember(name: string, value: string): boolean {
  try {
    localStorage.setItem(name, value);
    return true;
  } catch {
    return false;
  }
}
