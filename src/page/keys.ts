/** A key's action and its description. */
export interface KeyBinding {
  readonly key: string;
  readonly does: string;
  readonly run: () => void;
}

const isTyped = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.matches('input, textarea, select') || target.isContentEditable);

/**
 * Listens to keys without modifiers, except while the user types. Calls `onPalette` for Cmd-K and
 * Ctrl-K, everywhere. The returned function ends it.
 */
export function listenToKeys(bindings: () => readonly KeyBinding[], onPalette: () => void): () => void {
  const onKey = (event: KeyboardEvent): void => {
    if (event.key.toLowerCase() === 'k' && (event.metaKey || event.ctrlKey)) {
      event.preventDefault();
      onPalette();
      return;
    }
    if (event.metaKey || event.ctrlKey || event.altKey || isTyped(event.target)) return;
    const binding = bindings().find(({ key }) => key === event.key);
    if (binding === undefined) return;
    event.preventDefault();
    binding.run();
  };
  addEventListener('keydown', onKey);
  return () => removeEventListener('keydown', onKey);
}
