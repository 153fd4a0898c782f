// @ts-check
// A picture that is pasted (Ctrl+V) or dropped anywhere on the page. While one is dragged over it, a sheet
// lies over the page, so that it does not matter where it is dropped.

/** @param {DataTransfer | null} data */
const holdsFiles = (data) => Boolean(data?.types.includes("Files"));

/**
 * @param {{ take: (file: File) => void; text: () => Record<string, string> }} given */
export function listenForFiles({ take, text }) {
  const sheet = document.createElement("div");
  sheet.id = "sheet";
  sheet.hidden = true;
  document.body.append(sheet);

  document.addEventListener("dragenter", (event) => {
    if (!holdsFiles(event.dataTransfer) || !sheet.hidden) return;
    sheet.textContent = text().drop_it;
    sheet.hidden = false;
  });
  sheet.addEventListener("dragover", (event) => {
    event.preventDefault(); // otherwise the browser opens the file
    event.dataTransfer.dropEffect = "copy";
  });
  sheet.addEventListener("dragleave", () => {
    sheet.hidden = true;
  });
  sheet.addEventListener("drop", (event) => {
    event.preventDefault();
    sheet.hidden = true;
    if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });
  document.addEventListener("paste", (event) => {
    const file = [...(event.clipboardData?.files ?? [])].find(({ type }) =>
      type.startsWith("image/"),
    );
    if (!file) return; // text, which goes where the cursor is
    event.preventDefault();
    take(file);
  });
}
