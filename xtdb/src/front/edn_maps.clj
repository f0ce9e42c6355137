(ns front.edn-maps
  "Marks long maps and sets in EDN text, so that their keys can be checked before the collection is made.

  Clojure's reader makes a map of the content of braces at once, in quadratic time if keys share a hash. Here such braces
  become a tagged list, `#front/map (…)`, whose reader checks the keys first. Short maps and sets are unchanged."
  (:require [front.collisions :as collisions])
  (:import (clojure.lang Keyword Symbol)
           (java.util ArrayList Collection)))

(set! *warn-on-reflection* true)
(set! *unchecked-math* :warn-on-boxed)

(def ^:private shortest
  "The minimum number of characters in the braces of a set with one key more than may share a hash."
  (* 2 collisions/most-of-one-hash))

;; Character codes as constants: comparing boxed characters would cost more than the reader itself.
(def ^:const ^:private left-brace (long \{))
(def ^:const ^:private right-brace (long \}))
(def ^:const ^:private colon (long \:))
(def ^:const ^:private underscore (long \_))

(defrecord ^:private Brace [^long from ^long to ^String mark])

(defn- delimiter? [^long c]
  (case c
    (32 44 9 10 13 12 34 40 41 91 93 123 125 94 59) true
    (and (> c 127) (Character/isWhitespace (int c)))))

(defn- code
  "The character at this index, or a space beyond the end."
  ^long [^String text ^long at]
  (if (< at (.length text)) (long (int (.charAt text (int at)))) 32))

(defn- string-end ^long [^String text ^long from]
  (let [end (.length text)]
    (loop [at from]
      (cond
        (>= at end) end
        (= \" (.charAt text at)) (inc at)
        (= \\ (.charAt text at)) (recur (+ at 2))
        :else (recur (inc at))))))

(defn- line-end ^long [^String text ^long from]
  (let [at (.indexOf text (int \newline) (int from))]
    (if (neg? at) (.length text) at)))

(defn- namespaced-map
  "The opening of `#:ns{` at this index, or nil."
  [^String text ^long at]
  (let [brace (.indexOf text (int \{) (int at))]
    (when (and (pos? brace) (< (- brace at) 1000))
      (let [named (.trim (.substring text (+ at 2) brace))]
        (when (and (pos? (.length named)) (not-any? #(delimiter? (int %)) named))
          (->Brace at (inc brace) (str " #front/ns-map (" named " ")))))))

(defn- opening
  "The opening of a map or set at this index, or nil. In the middle of a token, `#` opens nothing."
  [^String text ^long at token?]
  (let [c (code text at)]
    (cond
      (= left-brace c) (->Brace at (inc at) " #front/map (")
      token? nil
      (= left-brace (code text (inc at))) (->Brace at (+ at 2) " #front/set (")
      (= colon (code text (inc at))) (namespaced-map text at))))

(defn- close! [^String text ^long at ^ArrayList open ^ArrayList found]
  (when-not (.isEmpty open)
    (let [^Brace brace (.remove open (dec (.size open)))]
      (when (and brace (= right-brace (code text at)) (>= (- at (.-to brace)) (long shortest)))
        (.add found brace)
        (.add found (->Brace at (inc at) ")"))))))

(defn- token-end ^long [^String text ^long from]
  (let [end (.length text)]
    (loop [at from]
      (if (or (>= at end) (delimiter? (code text at))) at (recur (inc at))))))

(defn- long-pairs
  "The openings and closings, by index, of all maps and sets that are long enough. Also checks every keyword of the text."
  [^String text]
  (let [end (.length text)
        look-at! (collisions/keyword-reader)
        found (ArrayList.)
        open (ArrayList.)]
    (loop [at 0, token? false]
      (when (< at end)
        (let [c (code text at)]
          (case c
            34 (recur (string-end text (inc at)) false)
            59 (recur (line-end text at) false)
            92 (recur (+ at 2) true)
            58 (let [after (token-end text (inc at))]
                 (when (and (not token?) (< (inc at) after)) (look-at! (.substring text (inc at) after)))
                 (recur after true))
            (40 91) (do (.add open nil)
                        (recur (inc at) false))
            (41 93 125) (do (close! text at open found)
                            (recur (inc at) false))
            (35 123) (let [^Brace brace (opening text at token?)]
                       (cond
                         brace (do (.add open brace)
                                   (recur (long (.-to brace)) false))
                         (and (not token?) (= underscore (code text (inc at)))) (recur (+ at 2) false)
                         :else (recur (inc at) true)))
            (recur (inc at) (not (delimiter? c)))))))
    (sort-by :from found)))

(defn marked
  "The text with its long maps and sets as tagged lists."
  ^String [^String text]
  (let [braces (when (> (.length text) (long shortest)) (long-pairs text))]
    (if (empty? braces)
      text
      (let [out (StringBuilder. (+ (.length text) (* 16 (count braces))))
            end (reduce (fn [done ^Brace brace]
                          (.append out text (int done) (int (.-from brace)))
                          (.append out (.-mark brace))
                          (.-to brace))
                        0 braces)]
        (.append out text (int end) (.length text))
        (.toString out)))))

(defn- entries [^Collection forms]
  (when (odd? (.size forms))
    (throw (ex-info "A map with a key that has no value" {:fault :map})))
  (ArrayList. forms))

(defn- all-distinct! [^long n made]
  (when-not (= n (count made))
    (throw (ex-info "A key stands twice" {:fault :duplicate})))
  made)

(defn- map-of [^Collection forms]
  (all-distinct! (quot (.size forms) 2) (collisions/map-of (entries forms))))

(defn- qualified [ns-name k]
  (letfn [(in-namespace [named make]
            (case (namespace named)
              nil (make ns-name (name named))
              "_" (make nil (name named))
              named))]
    (cond
      (instance? Keyword k) (in-namespace k keyword)
      (instance? Symbol k) (in-namespace k symbol)
      :else k)))

(defn- ns-map-of [[ns-symbol & forms]]
  (map-of (vec (mapcat (fn [[k v]] [(qualified (name ns-symbol) k) v]) (partition-all 2 (entries forms))))))

(defn- set-of [^Collection forms]
  (collisions/check! forms)
  (all-distinct! (.size forms) (into #{} forms)))

(def readers
  "The readers of the tagged lists."
  {'front/map map-of
   'front/ns-map ns-map-of
   'front/set set-of})
