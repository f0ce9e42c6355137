(ns front.scan
  "Scans EDN text before a reader sees it, for nesting and runs of digits.

  Readers recurse once for each level, and turning a long run of digits into a number takes quadratic time,
  so both are refused in the text. Also estimates the memory of a body's values from its bytes.")

(set! *warn-on-reflection* true)
(set! *unchecked-math* :warn-on-boxed)

(def ^:const max-depth
  "The maximum nesting of collections that is read.
  XTDB's serialisation recurses too, in the indexer's thread: a document nested about 400 deep overflows its stack,
  and the indexer never recovers."
  128)

(def ^:const max-digits
  "The longest run of digits that is read as a number."
  1000)

;; Character codes as constants: comparing boxed characters would cost more than the reader itself.
(def ^:const ^:private double-quote (long \"))
(def ^:const ^:private backslash (long \\))
(def ^:const ^:private semicolon (long \;))
(def ^:const ^:private line-feed (long \newline))
(def ^:const ^:private comma (long \,))
(def ^:const ^:private colon (long \:))
(def ^:const ^:private zero (long \0))
(def ^:const ^:private nine (long \9))

(defn- after-string
  "The index after the string whose contents begin at `from`."
  ^long [^String text ^long from]
  (let [end (.length text)]
    (loop [at from]
      (if (>= at end)
        end
        (let [c (long (int (.charAt text (int at))))]
          (cond
            (= c double-quote) (inc at)
            (= c backslash) (recur (+ at 2))
            :else (recur (inc at))))))))

(defn- after-comment ^long [^String text ^long from]
  (let [at (long (.indexOf text (int line-feed) (int from)))]
    (if (neg? at) (.length text) at)))

(defn- nesting
  "1 for a character that opens a collection, -1 for one that closes one, else 0."
  ^long [^long c]
  (case c
    (40 91 123) 1
    (41 93 125) -1
    0))

(defn fault
  "The reason why this EDN text is not read: :too-deep, :number-too-long, or nil.

  Text that is not EDN may pass; the reader refuses it."
  [^String text]
  (let [end (.length text)]
    (loop [at 0, depth 0, digits 0]
      (cond
        (> depth max-depth) :too-deep
        (> digits max-digits) :number-too-long
        (>= at end) nil
        :else
        (let [c (long (int (.charAt text (int at))))]
          (cond
            (= c double-quote) (recur (after-string text (inc at)) depth 0)
            (= c backslash) (recur (+ at 2) depth 0)
            (= c semicolon) (recur (after-comment text at) depth 0)
            (and (>= c zero) (<= c nine)) (recur (inc at) depth (inc digits))
            :else (recur (inc at) (max 0 (+ depth (nesting c))) 0)))))))

(defn parts
  "The approximate number of values in the text of a body, EDN or JSON: strings, tokens and, counted twice, collections. It is never much too small."
  ^long [^bytes body]
  (let [end (alength body)]
    (loop [at 0, n 0, inside? false, token? false]
      (if (>= at end)
        n
        (let [c (long (aget body at))]
          (cond
            inside? (cond
                      (= c backslash) (recur (+ at 2) n true false)
                      (= c double-quote) (recur (inc at) n false false)
                      :else (recur (inc at) n true false))
            (= c double-quote) (recur (inc at) (inc n) true false)
            (= c backslash) (recur (+ at 2) (inc n) false false)
            (= 1 (nesting c)) (recur (inc at) (+ n 2) false false)
            (or (and (>= c 0) (<= c 32)) (= c comma) (= c colon) (= -1 (nesting c))) (recur (inc at) n false (and token? (= c colon)))
            token? (recur (inc at) n false true)
            :else (recur (inc at) (inc n) false true)))))))
