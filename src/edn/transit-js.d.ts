declare module 'transit-js' {
  interface WriteHandler<T> {
    readonly tag: (value: T) => string;
    readonly rep: (value: T) => unknown;
    readonly stringRep: (value: T) => string | null;
  }
  interface Transit {
    writer(
      type: 'json',
      options: { readonly handlers: unknown; readonly unpack: (value: unknown) => unknown; readonly cache: false },
    ): { write(value: unknown): string };
    reader(
      type: 'json',
      options: {
        readonly handlers: Readonly<Record<string, (rep: never) => unknown>>;
        readonly mapBuilder: {
          readonly init: () => unknown[];
          readonly add: (flat: unknown[], key: unknown, value: unknown) => unknown[];
          readonly finalize: (flat: unknown[]) => unknown;
        };
      },
    ): { read(text: string): unknown };
    makeWriteHandler<T>(handler: WriteHandler<T>): unknown;
    map(flat: readonly unknown[]): unknown;
    isTaggedValue(value: unknown): value is { readonly tag: string; readonly rep: unknown };
  }
  const transit: Transit;
  export = transit;
}
