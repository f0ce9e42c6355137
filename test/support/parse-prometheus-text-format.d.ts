declare module 'parse-prometheus-text-format' {
  interface Family {
    readonly name: string;
    readonly help: string;
    readonly type: string;
    readonly metrics: readonly {
      readonly value?: string;
      readonly count?: string;
      readonly labels?: Readonly<Record<string, string>>;
    }[];
  }
  function parse(text: string): readonly Family[];

  export = parse;
}
