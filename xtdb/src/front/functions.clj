(ns front.functions
  "The functions a query may call: pure, of bounded work for arguments of bounded size.")

(def ^:private comparison
  '#{= == not= < <= > >= compare identical? not min max})

(def ^:private arithmetic
  '#{+ - * / +' -' *' inc dec inc' dec' quot rem mod
     bit-and bit-or bit-xor bit-not bit-and-not bit-clear bit-flip bit-set bit-test
     bit-shift-left bit-shift-right unsigned-bit-shift-right
     long int short byte double float bigdec bigint num rationalize})

(def ^:private predicates
  '#{any? associative? boolean? bytes? char? coll? counted? decimal? distinct? double? empty? even? false? float? ident? indexed? inst?
     int? integer? keyword? list? map? nat-int? neg-int? neg? nil? number? odd? pos-int? pos? qualified-ident? qualified-keyword?
     qualified-symbol? ratio? rational? seq? seqable? sequential? set? simple-ident? simple-keyword? simple-symbol? some? sorted?
     string? symbol? true? uri? uuid? vector? zero?})

(def ^:private text
  '#{str subs name namespace keyword symbol char boolean count})

(def ^:private collections
  '#{assoc assoc-in butlast concat conj cons contains? dedupe disj dissoc distinct drop drop-last empty ffirst find first flatten fnext
     frequencies get get-in hash-map hash-set array-map identity interleave interpose keys last list merge next nfirst nnext not-empty
     nth nthnext nthrest peek pop rest reverse second select-keys seq set sort split-at subvec take take-last
     vals vec vector zipmap})

(def ^:private core-functions
  (into #{} cat [comparison arithmetic predicates text collections]))

(defn callable?
  "Whether a clause or a find expression may call this symbol."
  [sym]
  (and (symbol? sym)
       (or (contains? core-functions sym)
           (and (= "clojure.core" (namespace sym))
                (contains? core-functions (symbol (name sym)))))))

(def ^:private small
  (into '#{!= count boolean char long int short byte double float get-attr get-start-valid-time get-end-valid-time}
        cat [(disj comparison 'min 'max) predicates]))

(def making
  "The functions that may make, or pass on, a value of any size."
  (into #{'distinct?}
        (remove (into small '#{bit-and bit-or bit-xor bit-not bit-and-not bit-clear bit-flip bit-set bit-test
                               bit-shift-left bit-shift-right unsigned-bit-shift-right}))
        core-functions))

(defn- core-name [sym]
  (if (and (symbol? sym) (= "clojure.core" (namespace sym))) (symbol (name sym)) sym))

(defn made-by
  "The plain name of the function that this symbol calls, if the function's result must be checked; otherwise nil."
  [sym]
  (let [plain (core-name sym)]
    (when (contains? making plain) plain)))

(defn small?
  "Whether this function's result is never larger than one stored value, whatever the arguments are."
  [sym]
  (contains? small (core-name sym)))

(defn number-step?
  "Whether this function's result is a number at most one digit longer than its arguments."
  [sym]
  (contains? '#{+ - inc dec +' -' inc' dec'} (core-name sym)))

(def clause-built-ins
  "XTDB's own predicates."
  '#{q get-attr get-start-valid-time get-end-valid-time == !=})

(def find-built-ins
  "XTDB's own aggregates and find forms."
  '#{pull if sum min max count count-distinct avg median variance stddev rand sample distinct})
