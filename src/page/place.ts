import { computed, signal } from '@preact/signals';
import { type Address, addressText, isOwn, linkTo, parseAddress, type ViewName } from './address.js';

const shown = signal<Address>(parseAddress(location));

/** The current address. */
export const place = computed(() => shown.value);

/** Maximum time in milliseconds to wait until a view has its former height again. */
const RESTORE_MS = 3_000;

/** Scrolls to a place as soon as the view is high enough. Gives up when the reader scrolls. */
function scrollBack(y: number): void {
  const until = performance.now() + RESTORE_MS;
  const ended = new AbortController();
  for (const event of ['wheel', 'touchstart', 'keydown'])
    addEventListener(event, () => ended.abort(), { signal: ended.signal, passive: true });
  const step = (): void => {
    scrollTo(0, y);
    if (ended.signal.aborted || Math.abs(scrollY - y) < 2 || performance.now() > until) ended.abort();
    else requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}

/** Goes to an address of the page. `replace` replaces the current history entry. */
export function goTo(address: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  const before = shown.value.view;
  if (replace) history.replaceState(history.state, '', address);
  else {
    history.replaceState({ y: scrollY }, '');
    history.pushState(null, '', address);
  }
  shown.value = parseAddress(location);
  if (!replace && shown.value.view !== before) scrollTo(0, 0);
}

/** Changes parameters of the current address. */
export function refine(
  of: Readonly<Record<string, string | number | undefined>>,
  options: { readonly replace?: boolean } = { replace: true },
): void {
  const { view, of: before } = place.value;
  const said = Object.fromEntries(
    Object.entries(of).map(([name, value]) => [name, value === undefined ? '' : String(value)]),
  );
  goTo(addressText({ view, of: { ...before, ...said } }), options);
}

/** Returns the address of another view, based on the current address. */
export function from(view: ViewName, of: Readonly<Record<string, string | number | undefined>> = {}): string {
  return linkTo(place.value, view, of);
}

/** Starts to handle the browser's history and the page's links without a reload. */
export function followLinks(): void {
  const follow = (): void => {
    shown.value = parseAddress(location);
  };
  // Parses the address again, because the prefix of addresses may have changed since the first
  // time.
  follow();
  history.scrollRestoration = 'manual';
  addEventListener('popstate', ({ state }) => {
    follow();
    scrollBack((state as { readonly y?: number } | null)?.y ?? 0);
  });
  addEventListener('click', (event) => {
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!isPlain || link === null || event.defaultPrevented || link.origin !== location.origin || !isOwn(link)) return;
    event.preventDefault();
    goTo(link.pathname + link.search + link.hash);
  });
}
