/**
 * Result of a look-up; undefined when Azure does not have it. Other errors are passed on: as "not found" they would
 * lead to a second creation.
 */
export async function findResource<T>(lookUp: Promise<T>): Promise<T | undefined> {
  try {
    return await lookUp;
  } catch (error) {
    if (/\b404\b|NotFound/.test(String(error))) return undefined;
    throw error;
  }
}
