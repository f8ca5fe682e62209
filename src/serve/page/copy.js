// Lines to copy, for each client.

function quote(text) {
  return JSON.stringify(text);
}

/** Returns what there is to copy: a title and a text each. */
export function snippets({ folder, layer, lod, region, dtype, shape, hasZarr, zarr }) {
  const path = decodeURIComponent(new URL(folder, location.href).pathname.slice(new URL(document.body.dataset.root, location.href).pathname.length));
  const at = (name) => new URL(name, new URL(folder, location.href)).href;
  const list = [
    ["Slice, with curl", `curl -o slice.raw '${at(`lod${lod}.raw`)}?box=${region}'`],
    ["Slice, as NumPy array", `np.frombuffer(urllib.request.urlopen(${quote(`${at(`lod${lod}.raw`)}?box=${region}`)}).read(), "${dtype}").reshape(${shape})`],
    ["Level, from a mount", `np.load(${quote(`MOUNTPOINT/${path}lod${lod}.npy`)}, mmap_mode="r")`],
    ["Level, with curl", `curl -O '${at(`lod${lod}.npy`)}'`],
  ];
  if (hasZarr) {
    list.push(
      ["Zarr over HTTP", `zarr.open_group(${quote(zarr)}, mode="r")["${lod}"]`],
      ["xarray over HTTP", `xr.open_zarr(${quote(`${zarr}/lod${lod}`)})["image"]`],
    );
  }
  // OPeNDAP has no such samples
  if (!/^(float16|complex)/.test(dtype)) {
    const url = at(`lod${lod}`);
    list.push(
      ["xarray over OPeNDAP", `xr.open_dataset(${quote(url)})["data"]`],
      ["ncdump over OPeNDAP", `ncdump -h '${url}'`],
      ["NCO over OPeNDAP", `ncks '${url}' lod${lod}.nc`],
      ["CDO over OPeNDAP", `cdo sinfon '${url}'`],
      ["R over OPeNDAP", `ncvar_get(nc_open(${quote(url)}), "data")`],
      ["MATLAB over OPeNDAP", `ncread(${quote(url)}, "data")`],
    );
  }
  return list;
}

/** Fills an element with lines and buttons. */
export function show(element, list) {
  element.replaceChildren(...list.map(([title, text]) => {
    const row = document.createElement("div");
    row.className = "snippet";
    const label = document.createElement("span");
    label.textContent = title;
    const code = document.createElement("code");
    code.textContent = text;
    code.tabIndex = 0;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy: ${title}`);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
      } catch {
        // without the right to the clipboard the text is selected, to be copied by hand
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    row.append(label, code, button);
    return row;
  }));
}
