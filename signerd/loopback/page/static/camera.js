// The page's camera: the text of each QR code goes to signerd, which assembles the series and answers with the whole.
"use strict";
import { decodeQR } from "./qr/decode.js";

const WIDTH = 1280;
const HEIGHT = 720;
const LOOK_MS = 40;
const TROUBLES = {
  NotAllowedError: "This browser does not let the page use the camera. Allow it beside the address, or choose the file.",
  NotFoundError: "There is no camera. Import the file, or paste the text.",
  NotReadableError: "Another program has the camera open. Close it there, and try again.",
};
// The element that is scanning, and the function that stops it: one at a time.
let active = null;
let stop = () => {};

const bring = async (fields) => {
  const answer = await fetch("/scans", {
    method: "POST",
    headers: { "X-Signerd-Session": localStorage.getItem("signerd-session") ?? "" },
    body: new URLSearchParams(fields),
  });
  if (!answer.ok) throw new Error("signerd did not answer. Open the page again: `signerd open`");
  return answer.json();
};

const read = (canvas, video) => {
  canvas.width = video.videoWidth;
  canvas.height = video.videoHeight;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(video, 0, 0);
  try {
    return decodeQR(context.getImageData(0, 0, canvas.width, canvas.height));
  } catch {
    // No complete code in the picture.
    return "";
  }
};

const scan = async (place) => {
  const field = document.getElementById(place.dataset.camera);
  const [button, video, status] = [place.querySelector("[data-scan]"), place.querySelector("video"), place.querySelector("[role=status]")];
  const words = button.textContent;
  const canvas = document.createElement("canvas");
  let stream = null;
  let on = true;
  stop();
  const mine = () => {
    if (!on) return;
    on = false;
    active = null;
    for (const track of stream?.getTracks() ?? []) track.stop();
    video.srcObject = null;
    video.hidden = true;
    button.textContent = words;
  };
  active = place;
  stop = mine;
  try {
    button.textContent = "Stop the camera";
    status.textContent = "Waiting for the camera …";
    stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment", width: { ideal: WIDTH }, height: { ideal: HEIGHT } } });
    if (!on) {
      for (const track of stream.getTracks()) track.stop();
      return;
    }
    video.srcObject = stream;
    video.hidden = false;
    await video.play();
    status.textContent = "Hold the device's screen before the camera.";
    let [told, last] = [{ scan: "" }, ""];
    while (on && place.isConnected) {
      const text = read(canvas, video);
      if (text && text !== last) {
        last = text;
        told = await bring({ scan: told.scan, kind: place.dataset.kind, text });
        status.textContent = told.said ?? `${told.seen} of ${told.wanted} parts`;
        if (told.whole !== undefined) {
          field.value = told.whole;
          status.textContent = "Read whole. Go on below.";
          field.form.querySelector("button.main").focus();
          break;
        }
      }
      await new Promise((done) => setTimeout(done, LOOK_MS));
    }
  } catch (error) {
    if (on) status.textContent = TROUBLES[error.name] ?? error.message;
  } finally {
    mine();
  }
};

document.body.addEventListener("click", (event) => {
  const button = event.target.closest("[data-scan]");
  if (!button) return;
  const place = button.closest("[data-camera]");
  if (active !== place) scan(place);
  else {
    stop();
    place.querySelector("[role=status]").textContent = "";
  }
});
window.addEventListener("pagehide", () => stop());
