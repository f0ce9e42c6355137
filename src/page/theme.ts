/** The colours of the page. */
export type Theme = 'light' | 'dark' | 'system';

const KEPT_AS = 'palimpsest-theme';

function show(theme: string | null): void {
  const { documentElement: root } = document;
  if (theme === 'light' || theme === 'dark') root.dataset.theme = theme;
  else delete root.dataset.theme;
}

/** Sets the colours and stores them for later visits. */
export function setTheme(theme: Theme): void {
  if (theme === 'system') localStorage.removeItem(KEPT_AS);
  else localStorage.setItem(KEPT_AS, theme);
  show(theme);
}

/** Applies the stored colours. */
export function keptTheme(): void {
  show(localStorage.getItem(KEPT_AS));
}
