(ns front.socket
  "Checks the unix socket's folder: only its user can open it, and no live socket is there."
  (:import (java.io IOException)
           (java.net StandardProtocolFamily UnixDomainSocketAddress)
           (java.nio.channels SocketChannel)
           (java.nio.file Files LinkOption Path)
           (java.nio.file.attribute PosixFilePermission PosixFilePermissions)))

(set! *warn-on-reflection* true)

(def ^:private no-links (make-array LinkOption 0))

(def ^:private owner-only
  #{PosixFilePermission/OWNER_READ PosixFilePermission/OWNER_WRITE PosixFilePermission/OWNER_EXECUTE})

(defn- check-folder! [^Path folder]
  (when-not (Files/isDirectory folder no-links)
    (throw (IOException. (str "There is no folder " folder))))
  ;; If only the owner can open the folder, a process that can write to it belongs to the owner.
  (when (some (complement owner-only) (Files/getPosixFilePermissions folder no-links))
    (throw (IOException. (str "Others can open " folder "; make it private with chmod 700"))))
  (when-not (Files/isWritable folder)
    (throw (IOException. (str "Cannot write to " folder)))))

(defn- answering? [^Path path]
  (try
    (with-open [channel (SocketChannel/open StandardProtocolFamily/UNIX)]
      (.connect channel (UnixDomainSocketAddress/of path)))
    (catch IOException _ false)))

(defn clear!
  "Prepares `path` for a socket: checks that the folder is private, and removes the socket of a process that has ended.
  Throws IOException otherwise."
  [^Path path]
  (check-folder! (.getParent (.toAbsolutePath path)))
  (when (Files/exists path (into-array LinkOption [LinkOption/NOFOLLOW_LINKS]))
    (when (answering? path)
      (throw (IOException. (str "Another process listens on " path))))
    (Files/delete path)))

(defn make-private!
  "Gives access to the socket only to its owner."
  [^Path path]
  (Files/setPosixFilePermissions path (PosixFilePermissions/fromString "rw-------")))
