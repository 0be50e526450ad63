// What the server has at an address, in a component.
import { get } from "./api.js";
import { useCallback, useEffect, useRef, useState } from "./dom.js";

/// `value` stays while it is asked for anew by `reload`, and is `null` until there is any.
export function useFetched(address) {
  const [state, setState] = useState({ value: null, error: null });
  const latest = useRef(null);
  const reload = useCallback(async () => {
    latest.current = address;
    const found = await get(address).then((value) => ({ value, error: null }), (error) => ({ value: null, error }));
    // What comes late, of an address that nobody looks at any more, is left out.
    if (latest.current === address) setState({ address, ...found });
  }, [address]);
  useEffect(() => void reload(), [reload]);
  return state.address === address ? { ...state, reload } : { value: null, error: null, reload };
}

/// Something that is done once at a time; `error` is why it could not be, and `act` promises
/// whether it was.
export function useAction() {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const act = async (what) => {
    setBusy(true);
    setError(null);
    const failure = await what().then(() => null, (why) => why);
    setError(failure);
    setBusy(false);
    return failure === null;
  };
  return { busy, error, act };
}
