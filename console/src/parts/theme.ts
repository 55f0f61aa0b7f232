/** Light, dark, or as the system has it. The choice stays in this browser. */

export type Theme = 'system' | 'light' | 'dark';
const NAME = 'interlock.theme';

export function theme(): Theme {
  const kept = localStorage.getItem(NAME);
  return kept === 'light' || kept === 'dark' ? kept : 'system';
}

export function applyTheme(next: Theme = theme()): void {
  localStorage.setItem(NAME, next);
  document.documentElement.style.colorScheme = next === 'system' ? 'light dark' : next;
}
