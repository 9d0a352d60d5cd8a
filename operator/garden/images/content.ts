/** A manifest or blob that the mirror serves. */
export interface Content {
  digest: string;
  /** Media type. */
  type: string;
  /** Size in bytes, where known in advance. */
  size?: number | undefined;
  /** Bytes from `start` to `end` (exclusive). */
  read(start?: number, end?: number): AsyncIterable<Buffer>;
}

/** A request to an external registry. */
export interface UpstreamRequest {
  /** As in image names, e.g. `docker.io`. */
  registry: string;
  repository: string;
  /** A tag, or a digest of a manifest or blob. */
  reference: string;
  /** The requester's `USER:PASSWORD` in base64. */
  authorization?: string;
}

/** Source of images that the mirror lacks. Rejects with errors that have `status` and a message for people. */
export interface Upstream {
  manifest(request: UpstreamRequest): Promise<Content>;
  blob(request: UpstreamRequest): Promise<Content>;
  close(): Promise<void>;
}
