// The server has sent this encoded.
document.getElementById("made").textContent = "made by an encoded script";
