/** A key's action and its description. */
export interface KeyBinding {
  readonly key: string;
  readonly does: string;
  readonly run: () => void;
}

const isTyped = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.matches('input, textarea, select') || target.isContentEditable);

/** Actions of keys that work everywhere. */
interface KeysEverywhere {
  /** The action of Cmd-K or Ctrl-K. */
  readonly onPalette: () => void;
  readonly onEscape: () => void;
}

/**
 * Listens to keys without modifiers, except while the user types, and to the keys that work
 * everywhere. The returned function removes the listener.
 */
export function listenToKeys(
  bindings: () => readonly KeyBinding[],
  { onPalette, onEscape }: KeysEverywhere,
): () => void {
  const onKey = (event: KeyboardEvent): void => {
    if (event.key.toLowerCase() === 'k' && (event.metaKey || event.ctrlKey)) {
      event.preventDefault();
      onPalette();
      return;
    }
    if (event.key === 'Escape') {
      onEscape();
      if (isTyped(event.target)) (event.target as HTMLElement).blur();
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
