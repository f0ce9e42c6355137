import { useState } from 'preact/hooks';
import { enterWith } from './access.js';

/** Explains why a visitor was not admitted. */
export function Door({ why }: { readonly why: string }) {
  const [shown, setShown] = useState(why);
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    enterWith(String(new FormData(form).get('token') ?? '')).then(
      () => location.reload(),
      (error: unknown) => setShown(error instanceof Error ? error.message : String(error)),
    );
  };
  return (
    <main class="door card">
      <h1>Palimpsest</h1>
      <p role="alert">{shown}</p>
      <p>
        Open the address that <code>palimpsest review</code> printed. The token of a running{' '}
        <code>palimpsest serve</code> opens this page too.
      </p>
      <form class="row" onSubmit={onSubmit}>
        <label>
          Token <input name="token" type="password" autocomplete="off" required />
        </label>
        <button type="submit" class="first">
          Enter
        </button>
      </form>
    </main>
  );
}
